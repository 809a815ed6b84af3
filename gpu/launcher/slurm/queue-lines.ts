/** One job, as squeue lists it. */
export interface SlurmJob {
  jobId: string
  /** Slurm's word: `PENDING`, `RUNNING`, `NODE_FAIL`. */
  state: string
  /** Slurm's word for why it waits: `Resources`; `None` if there is none. */
  reason: string
  node: string | null
  /** Epoch milliseconds; null without a time limit, or before it runs. */
  endsAt: number | null
  comment: JobComment | null
}

/** What the comment of a job of ours says: who it belongs to, and what its wrapper has published last. */
export interface JobComment {
  serverId: string
  launchId: string
  generation: number
  /** Where its wrapper listens. */
  address: { host: string; port: number } | null
  /** How its engine has ended. */
  exit: { status: string; reason: string | null } | null
}

const commentVersion = 'infer 1'

/** The comment with which a job is submitted; its wrapper appends to it what it publishes. */
export const jobComment = (serverId: string, launchId: string): string => `${commentVersion} ${serverId} ${launchId}`

/** The name of every job of a server, by which they are listed. */
export const jobName = (serverId: string): string => `infer-${serverId}`

/** The arguments of squeue that list the jobs of a server, also those that have ended some minutes ago. */
export const queueArguments = (serverId: string): string[] => [
  '--noheader',
  '--me',
  `--name=${jobName(serverId)}`,
  '--states=all',
  '--format=%i|%T|%r|%N|%e|%k',
]

/** Reads what squeue prints for `queueArguments`. Rejects nothing: what is not a job of this server is left out. */
export function jobsIn(text: string, serverId: string): SlurmJob[] {
  const jobs: SlurmJob[] = []
  for (const line of text.split('\n')) {
    const [jobId = '', state = '', reason = '', node = '', endsAt = '', ...comment] = line.split('|')
    const read = commentIn(comment.join('|'))
    if (!/^\d+$/.test(jobId) || read?.serverId !== serverId) continue
    const seconds = Number(endsAt)
    jobs.push({
      jobId,
      state,
      reason,
      node: node === '' || node === '(null)' ? null : node,
      endsAt: state !== 'PENDING' && seconds > 0 && seconds < 0xff_ff_ff_ff ? seconds * 1_000 : null,
      comment: read,
    })
  }
  return jobs
}

/** Reads the comment of a job; null if it is none of ours. */
export function commentIn(text: string): JobComment | null {
  const [infer, version, serverId, launchId, run, event, ...words] = text.trim().split(' ')
  if (`${infer} ${version}` !== commentVersion || !serverId || !launchId) return null
  const comment: JobComment = { serverId, launchId, generation: 1, address: null, exit: null }
  if (run === undefined) return comment
  const generation = Number(run.slice(1))
  const [first, second] = words
  if (!run.startsWith('g') || !(generation > 0) || first === undefined) return null
  if (event === 'exit') {
    const reason = words.slice(1).join(' ')
    return { ...comment, generation, exit: { status: first, reason: reason || null } }
  }
  const port = Number(second)
  return event === 'run' && port > 0 ? { ...comment, generation, address: { host: first, port } } : null
}
