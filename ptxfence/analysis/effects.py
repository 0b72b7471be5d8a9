"""The vocabulary of the instruction table: what one instruction does to memory and to other threads.

`isa.py` maps an opcode with its qualifiers to an `Effect`; every analysis asks the effect and never
matches opcode text. Operand positions count from 0 over the parsed operands (the guard is no operand).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum


class Kind(Enum):
    """An enumeration whose members are hashed as the singletons they are; Enum's own hash is of the name, in Python."""

    __hash__ = object.__hash__


class Proxy(Kind):
    """Memory proxies (PTX ISA 8.6)."""

    GENERIC = "generic"
    ASYNC = "async"
    TENSORMAP = "tensormap"


class Mode(IntEnum):
    """A set of bits; no IntFlag, whose `&` takes ten times as long (3.9 us against 0.5)."""

    READ = 1
    WRITE = 2
    BOTH = 3


class Space(Kind):
    """Where the bytes are. ANY is generic addressing: the value analysis decides."""

    CTA = "shared::cta"
    CLUSTER = "shared::cluster"
    GLOBAL = "global"
    LOCAL = "local"
    PARAM = "param"
    CONST = "const"
    TENSOR = "tensor"
    ANY = "generic"


class Scope(Kind):
    """Thread scopes, narrow to wide (PTX ISA 8.5)."""

    THREAD = 0
    WARP = 1
    CTA = 2
    CLUSTER = 3
    GPU = 4
    SYS = 5


class Order(Kind):
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"
    SC = "sc"


# --- footprints: how many bytes, counted from the operand's address -----------------------------


@dataclass(frozen=True, slots=True)
class Bytes:
    """Exactly this many bytes at the address of each executing thread."""

    count: int


@dataclass(frozen=True, slots=True)
class BytesOf:
    """As many bytes as operand `operand` says."""

    operand: int


@dataclass(frozen=True, slots=True)
class Box:
    """From the address upwards, a size that is not in the text: tensor boxes, `wmma` strides."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """An operand tile behind a shared-memory matrix descriptor.

    `rows` is the number of rows (M or N) in the tile that the opcode fixes, None where an instruction
    descriptor fixes it (tcgen05; `idesc` is that operand's position and `which` names the tile).
    `row_bytes` is K bytes of one row. `mn_major` is the position of the transpose immediate (wgmma
    `imm-trans-*`), None where the type allows K-major only or `idesc` holds the bit.
    """

    family: str  # "wgmma" | "tcgen05"
    which: str  # "a" | "b"
    rows: int | None
    row_bytes: int
    element_bits: int
    mn_major: int | None = None
    idesc: int | None = None
    ctas: int = 1


@dataclass(frozen=True, slots=True)
class Copy:
    """tcgen05.cp: `count` bytes behind a shared-memory matrix descriptor, `rows` x `row_bytes`."""

    count: int
    rows: int
    row_bytes: int
    ctas: int = 1


Footprint = Bytes | BytesOf | Box | Matrix | Copy


class Completion(Kind):
    """How the end of an asynchronous operation becomes known."""

    SYNC = "none"  # not asynchronous
    CP_ASYNC = "cp.async group"  # commit/wait_group, wait_all or cp.async.mbarrier.arrive
    BULK_GROUP = "bulk group"  # cp.async.bulk.commit_group / wait_group{.read}
    MBARRIER = "mbarrier"  # complete_tx on the instruction's mbarrier operand
    WGMMA = "wgmma group"  # wgmma.commit_group / wait_group
    TCGEN05 = "tcgen05 commit"  # tcgen05.commit -> mbarrier
    NONE = "unobservable"  # nothing waits for it (global async stores, prefetch)


class Role(Kind):
    """What the bytes are used as; anything but DATA and TENSOR_MAP is kept out of data hazards."""

    DATA = "data"
    MBARRIER = "mbarrier"
    TENSOR_MAP = "tensor map"
    TMEM_SLOT = "tcgen05.alloc slot"
    CLC_RESPONSE = "cluster launch control response"


@dataclass(frozen=True, slots=True)
class Access:
    """One operand that reads or writes memory through one proxy."""

    operand: int
    proxy: Proxy
    mode: Mode
    space: Space
    footprint: Footprint
    role: Role = Role.DATA
    completion: Completion = Completion.SYNC
    mbarrier: int | None = None  # operand that holds the mbarrier it completes on
    multicast: bool = False  # the same offset in every CTA of a mask
    both_ctas: bool = False  # cta_group::2: also the peer CTA's shared memory
    order: Order | None = None  # strong accesses: ld.acquire, st.release, atom.acq_rel, ...
    scope: Scope | None = None
    volatile: bool = False
    value: int | None = None  # operand that receives (load) or supplies (store) the value
    atomic: bool = False


class Direction(Kind):
    """Direction of a proxy fence."""

    BOTH = "both"
    RELEASE = "release"  # generic -> async, the writer's half
    RELEASE_READS = "release reads"  # ::read, only the executing thread's own earlier reads
    ACQUIRE = "acquire"  # generic -> async, the user's half


class FenceKind(Kind):
    ASYNC = "generic-async proxy fence"
    TENSORMAP = "tensormap proxy fence"
    ALIAS = "alias proxy fence"
    THREAD = "thread fence"  # fence.acq_rel/sc, membar: generic proxy only
    MBARRIER_INIT = "mbarrier init fence"
    WGMMA = "wgmma register fence"
    TCGEN05 = "tcgen05 thread-sync fence"
    OTHER = "fence of another proxy pair"  # fabric forms


@dataclass(frozen=True, slots=True)
class Fence:
    """`covers` is the set of spaces a proxy fence orders; empty for the other kinds.

    A thread fence with `.sync_restrict` has the spaces it is limited to; an unrestricted one has none.
    """

    kind: FenceKind
    covers: frozenset[Space] = frozenset()
    direction: Direction = Direction.BOTH
    scope: Scope | None = None
    order: Order | None = None
    address: int | None = None  # operand with the tensor map (tensormap acquire)


class SyncKind(Kind):
    BAR = "bar.sync"  # arrive and wait: bar.sync, bar.red, barrier.*
    BAR_ARRIVE = "bar.arrive"
    WARP = "bar.warp.sync"
    CLUSTER_ARRIVE = "barrier.cluster.arrive"
    CLUSTER_WAIT = "barrier.cluster.wait"
    MBARRIER_INIT = "mbarrier.init"
    MBARRIER_INVAL = "mbarrier.inval"
    MBARRIER_ARRIVE = "mbarrier.arrive"  # also arrive_drop, arrive.expect_tx
    MBARRIER_EXPECT_TX = "mbarrier.expect_tx"
    MBARRIER_COMPLETE_TX = "mbarrier.complete_tx"
    MBARRIER_WAIT = "mbarrier.wait"  # test_wait, try_wait
    CP_ASYNC_ARRIVE = "cp.async.mbarrier.arrive"  # asynchronous arrive after the thread's earlier cp.async
    TCGEN05_COMMIT = "tcgen05.commit"  # asynchronous arrive after the thread's earlier tcgen05.mma/cp
    GRID_LAUNCH = "griddepcontrol.launch_dependents"
    GRID_WAIT = "griddepcontrol.wait"


@dataclass(frozen=True, slots=True)
class Sync:
    kind: SyncKind
    scope: Scope
    order: Order
    address: int | None = None  # operand with the mbarrier address
    barrier: int | None = None  # operand with the barrier id (bar.warp.sync: the member mask)
    count: int | None = None  # operand with the thread count (bar) or expected arrivals (init)
    tx: int | None = None  # operand with the transaction bytes
    result: int | None = None  # operand with the wait's predicate or the arrive's state
    parity: int | None = None  # operand with the phase parity or state of a wait
    space: Space = Space.CTA
    multicast: bool = False
    aligned: bool = False
    drops: bool = False  # arrive_drop: also lowers the expected arrivals of later phases
    increments: bool = False  # cp.async.mbarrier.arrive without .noinc: raises the pending count first


class GroupKind(Kind):
    COMMIT = "commit"
    WAIT = "wait"
    WAIT_ALL = "wait all"  # commit, then wait for everything


@dataclass(frozen=True, slots=True)
class Group:
    """commit_group and wait_group of cp.async, bulk copies and wgmma."""

    kind: GroupKind
    completion: Completion
    pending: int | None = None  # operand with N of wait_group N
    read: bool = False  # `.read`: sources have been read, destinations may not be written yet


class Flow(Kind):
    """Control flow."""

    NEXT = "next"
    BRANCH = "branch"
    INDEXED = "indexed branch"  # brx.idx
    CALL = "call"
    EXIT = "exit"  # ret, exit, trap


class Knowledge(Kind):
    KNOWN = "known"
    IRRELEVANT = "irrelevant"  # known, touches no memory and orders nothing
    UNKNOWN = "unknown"  # not in the table: may touch memory


@dataclass(frozen=True, slots=True)
class Effect:
    """Everything the table says of one opcode.

    `relevant` is derived: whether a data-flow analysis has to look at the instruction. Local memory, parameters
    and constants are private to a thread or never written, so accesses to them alone are not relevant.
    """

    opcode: str
    family: str  # the table row's name, e.g. "cp.async.bulk.tensor"
    knowledge: Knowledge = Knowledge.KNOWN
    accesses: tuple[Access, ...] = ()
    fences: tuple[Fence, ...] = ()
    sync: Sync | None = None
    group: Group | None = None
    flow: Flow = Flow.NEXT
    collective: bool = False  # warp(group)-collective: .sync.aligned operations on memory
    elects: bool = False  # elect.sync
    qualifiers: frozenset[str] = field(default_factory=lambda: frozenset[str]())

    relevant: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        shared = any(access.space not in _PRIVATE for access in self.accesses)
        acts = self.fences or self.sync or self.group or self.knowledge is Knowledge.UNKNOWN
        object.__setattr__(self, "relevant", shared or bool(acts))


_PRIVATE = frozenset((Space.LOCAL, Space.PARAM, Space.CONST))
