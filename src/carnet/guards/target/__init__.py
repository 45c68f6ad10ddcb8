"""What is asked for: the agent, its skill, the payload, and where the call may go on."""
