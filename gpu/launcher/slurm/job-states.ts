import type { Launch } from '../launcher.ts'
import type { SlurmJob } from './queue-lines.ts'

const waiting = new Set([
  'PENDING',
  'CONFIGURING',
  'REQUEUED',
  'REQUEUE_HOLD',
  'REQUEUE_FED',
  'RESV_DEL_HOLD',
  'SPECIAL_EXIT',
])
/** States that Slurm does not leave any more, and why a job is in them besides its own end. */
const over: Record<string, (job: SlurmJob) => string | null> = {
  COMPLETED: () => null,
  FAILED: () => null,
  CANCELLED: () => 'Its Slurm job was cancelled.',
  TIMEOUT: () => 'The time limit of its Slurm job was reached.',
  PREEMPTED: () => 'Slurm gave its cards to a job of higher priority.',
  NODE_FAIL: ({ node }) =>
    node === null
      ? 'Its node has failed.'
      : /[[,]/.test(node)
        ? `One of its nodes '${node}' has failed.`
        : `Its node '${node}' has failed.`,
  OUT_OF_MEMORY: () => 'It used more main memory than its Slurm job had.',
  BOOT_FAIL: ({ node }) => `Its node${node ? ` '${node}'` : ''} could not be started.`,
  DEADLINE: () => 'The deadline of its Slurm job was reached.',
  REVOKED: () => 'Its Slurm job was taken over by another cluster.',
}

export const isOver = ({ state }: SlurmJob): boolean => state in over

/** What a job means for its launch. A state that is not known here counts as running: only Slurm says that one has ended. */
export function launchStateOf(job: SlurmJob): Pick<Launch, 'state' | 'reason' | 'status'> {
  const exit = job.comment?.exit
  if (job.state in over) {
    // The kernel has killed it with its wrapper, and one of its requests may be the cause: it was not lost with its node.
    const status = exit?.status ?? (job.state === 'OUT_OF_MEMORY' ? 'SIGKILL' : null)
    const cause = over[job.state]!(job) ?? exit?.reason ?? (status === null ? null : endedWith(status))
    return { state: 'gone', status, reason: cause }
  }
  if (waiting.has(job.state) && (exit || job.comment?.address))
    // It has run. Nobody waits for its second run: the server decides anew where an engine goes.
    return { state: 'gone', status: exit?.status ?? null, reason: 'Slurm has queued its job again.' }
  if (waiting.has(job.state)) return { state: 'pending', status: null, reason: pendingReason(job) }
  if (exit || job.state === 'COMPLETING' || job.state === 'STAGE_OUT')
    return { state: 'ending', status: null, reason: exit?.reason ?? null }
  return { state: 'running', status: null, reason: null }
}

/** The end of an engine about which nothing else is known. */
export const endedWith = (status: string): string =>
  status.startsWith('SIG') ? `It was ended by ${status}.` : `It has exited with status ${status}.`

/** By the beginning of Slurm's word. */
const pendingReasons: readonly (readonly [prefix: string, sentence: string])[] = [
  ['Resources', 'the cards, cores or memory that it needs are in use'],
  ['Priority', 'jobs of higher priority come first'],
  ['Dependency', 'it depends on another job'],
  ['ReqNodeNotAvail', 'nodes that it needs are drained, down or reserved'],
  ['NodeDown', 'nodes that it needs are down'],
  ['PartitionDown', 'its partition is down'],
  ['PartitionInactive', 'its partition starts no jobs now'],
  ['PartitionNodeLimit', 'it asks for more than its partition allows; change `partition` of the pool'],
  ['PartitionTimeLimit', 'it asks for more time than its partition allows; lower `time_limit` of the pool'],
  ['Reservation', 'its reservation has not begun'],
  ['BeginTime', 'its begin time has not come'],
  ['JobHeldUser', 'it is held; release it with `scontrol release`'],
  ['JobHeldAdmin', 'an administrator of the cluster holds it'],
  ['JobLaunchFailure', 'its node could not start it; an administrator of the cluster can say why'],
  ['launch_failed_requeued_held', 'its node could not start it; an administrator of the cluster can say why'],
  ['BadConstraints', 'no node can ever meet what it asks for; change the pool'],
  ['Licenses', 'a license that it needs is in use'],
  ['Assoc', 'a limit of its account is reached'],
  ['QOS', 'a limit of its quality of service is reached'],
  ['MaxJobs', 'a limit of its account is reached'],
  ['InvalidAccount', 'its account is not valid; change `account` of the pool'],
  ['InvalidQOS', 'its quality of service is not valid; change `qos` of the pool'],
  ['Prolog', 'its node is being prepared'],
]

/** Why a job waits, as a sentence with Slurm's own word. */
function pendingReason({ reason, state, node }: SlurmJob): string {
  if (state === 'CONFIGURING') return `Its node${node ? ` '${node}'` : ''} is being prepared (Slurm: ${state}).`
  if (reason === '' || reason === 'None') return 'It waits for Slurm.'
  const words = pendingReasons.find(([prefix]) => reason.startsWith(prefix))?.[1]
  return words === undefined ? `It waits for Slurm: ${reason}.` : `It waits for Slurm: ${words} (${reason}).`
}
