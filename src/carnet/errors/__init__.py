"""Every exception of Carnet, drawn as a tree.

    CarnetError
    ├── Malformed            the request cannot be read; sending it again changes nothing
    │   ├── InvalidJson  InvalidRequest  MalformedCallerContext  ChainMismatch
    │   ├── UnsupportedProtocolVersion  AddressInvalid  SchemaInvalid
    │   ├── NonceInvalid  TimestampInvalid  TravelDocumentInvalid  KeyInvalid
    │   ├── CallbackForbidden
    │   ├── BodyTooLarge  MediaTypeUnsupported  EncodingUnsupported
    │   └── the edge         MalformedRequest  HeadersTooLarge  UriTooLong  HeaderTimeout
    │                        BodyTimeout
    ├── Refused              the request was understood and may not run
    │   ├── who              TokenMissing  TokenInvalid  PermissionMissing  TooManyFailures
    │   │                    PersonRequired  SessionInvalid  SignInCodeInvalid  CrossSite
    │   │                    CredentialInvalid  AccessDenied  CallerNotVerified  PolicyDenied
    │   │                    HostUnknown  SessionRequired
    │   ├── proof            SignatureMissing  SignatureInvalid  SignatureExpired
    │   │                    InsufficientCoverage  HeaderNotSigned  DigestInvalid
    │   │                    DigestMismatch  DestinationMismatch  KeyUnknown  KeyRevoked
    │   │                    NonceReplayed  TimestampOutOfWindow  StrangerKeyChanged
    │   ├── delegation       DelegationInvalid  DelegationWidened  DelegationExceeded
    │   │                    DelegationReplayed
    │   ├── content          InjectionDetected  SkillNotFound  SkillForbidden
    │   ├── where            AgentNotFound  PeerUnknown  PeerAgentNotFound  RunNotFound
    │   │                    StrangerKeyChanged
    │   │                    PersonNotFound  TaskNotFound  DeliveryNotFound  SessionNotFound
    │   │                    RouteNotFound  MethodNotAllowed  InterruptNotFound  RuleNotFound
    │   │                    ConversationNotFound  MessageNotFound  MemoryFileNotFound
    │   ├── chain            DepthExceeded  ChainFinal  RunCallsExceeded  LoopDetected
    │   ├── money            PaymentRequired  SpendingLimitReached  BillUnpaid  PayerRefused
    │   │                    BudgetExceeded  PaymentRefused
    │   ├── forwarding       ForwardingNotAllowed  PeerNotListed
    │   ├── turns            IdempotencyMismatch  InProgress  DefinitionChanged  Cancelled
    │   │                    InterruptExpired  PolicyStateInvalid  Declined
    │   │                    AnsweredOtherwise  AnswerForbidden  PersonExists  Deleted
    │   │                    TurnElsewhere  RunAlreadyStarted  RunOwnerForbidden
    │   ├── tasks            TaskNotCancelable  OperationUnsupported  TaskRejected
    │   ├── memory           MemoryChanged  MemoryFull
    │   ├── waits            InputRequired  ApprovalRequired  ConsentRequired
    │   │                    SignInRequired  PaymentWanted  WaitRequired  RecoveryRequired
    │   ├── policies         LegalRestriction  PolicyForbidden
    │   ├── triggers         HookRefused  TriggerPaused  TriggerNotFound  TriggerExists
    │   │                    TooManyTriggers  TooManyFirings
    │   └── load             RateLimited  TooManyCalls  TooManyStreams  Overloaded
    │                        ShuttingDown  TokenBudgetExceeded  TooManyTasks
    │                        TooManyWaiting  TooManyQuestions  ConversationBusy
    │                        ConversationFull  TooManyConversations
    ├── Upstream             someone we called did not answer properly
    │   ├── ProviderError  ProviderUnavailable  ProviderTimeout  CircuitOpen  PeerRefused
    │   │   PeerBusy  PeerUnreachable  PeerResponseInvalid  PeerCredentialMissing  StatementInvalid
    │   │   EgressRefused  AgentFailed  FaultInjected  ToolUnusable
    │   └── of a model       ContextTooLong  ModelRefused  ModelKeyRefused  ModelQuotaExceeded
    │                        ModelRateLimited  ModelNotFound
    ├── Ours                 our own fault; the detail is in the log under the incident id
    │   └── Internal  StorageUnavailable  OutcomeUnknown
    └── ConfigInvalid  UsageInvalid  Unreachable      at the command line, never on the wire

Law 1. `str(error)` is for our logs; `safe_text` is for peers. It is a fixed template filled with
       integers, our own ids and words of ours; never with what a peer sent.
Law 2. Every leaf has its own `code`, a `status`, a `hint` (the next step) and says whether the same
       request may be sent again (`retryable`). Its docstring is what `carnet explain CODE` prints.
Law 3. The enum is closed: whatever else is raised becomes `Internal` at the edge.
"""

from carnet.errors.base import *
from carnet.errors.base import BY_CODE, leaves
from carnet.errors.malformed import *
from carnet.errors.ours import *
from carnet.errors.refused_call import *
from carnet.errors.refused_identity import *
from carnet.errors.refused_payment import *
from carnet.errors.refused_state import *
from carnet.errors.refused_task import *
from carnet.errors.refused_trigger import *
from carnet.errors.terminal import *
from carnet.errors.upstream import *

BY_CODE.update({leaf.code: leaf for leaf in leaves()})
