"""What callers ask about their own tasks, in dialects where every call is one."""
