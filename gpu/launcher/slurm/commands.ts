import { execa } from 'execa'

/** What a command of Slurm has answered. */
export interface CommandResult {
  /** Whether it has ended by itself with status 0. */
  ok: boolean
  stdout: string
  /** What it has said, or why it did not run, as one line. */
  fault: string
  /** Whether it is known that nothing was done: Slurm has answered and refused. */
  refused: boolean
}

/** Runs a command of Slurm, and kills it when it is aborted. Never throws. */
export type RunCommand = (
  program: 'sbatch' | 'squeue' | 'scancel' | 'sinfo' | 'scontrol',
  args: readonly string[],
  signal: AbortSignal,
  input?: string,
) => Promise<CommandResult>

/** Milliseconds after which a command is killed: a slurmctld that hangs would keep it for minutes. */
const timeoutMs = 9_000
const submitMs = 25_000

/** Variables with which the commands would do something else than their arguments say; those of a job around the server too. */
const misleading = /^(SBATCH|SQUEUE|SINFO|SCANCEL|SALLOC|SLURM)_/
const kept = /^SLURM_(CONF|JWT|CONF_SERVER|CLUSTERS)$/

export function openCommands(host: Readonly<Record<string, string | undefined>>): RunCommand {
  const env: Record<string, string> = {}
  for (const [name, text] of Object.entries(host))
    if (text !== undefined && (kept.test(name) || !misleading.test(name))) env[name] = text
  // Times as seconds of the epoch: local times are ambiguous once a year.
  env.SLURM_TIME_FORMAT = '%s'
  return async (program, args, signal, input = '') => {
    const result = await execa(program, args, {
      env,
      extendEnv: false,
      input,
      timeout: program === 'sbatch' ? submitMs : timeoutMs,
      killSignal: 'SIGKILL',
      cancelSignal: signal,
      maxBuffer: 16 << 20,
      reject: false,
    })
    const { exitCode, stdout, stderr, timedOut, code } = result
    const words = stderr.trim().replaceAll(/\s*\n\s*/g, ' ')
    const missing = code === 'ENOENT' ? `'${program}' is not installed here, or not on PATH` : undefined
    const fault =
      missing ?? (timedOut ? 'it has not answered in time' : words || `it has ended with ${exitCode ?? code}`)
    return {
      ok: exitCode === 0,
      stdout,
      fault,
      refused: missing !== undefined || (typeof exitCode === 'number' && exitCode !== 0 && !isUnanswered(words)),
    }
  }
}

/** Whether the words of a command leave open what slurmctld has done. */
export const isUnanswered = (words: string): boolean =>
  words === '' ||
  /unable to contact|timed out|zero bytes|connect(ion)? (failure|refused)|communication|standby|temporarily|try again|plugin.*credential|munge|dns_srv|DNS SRV|configuration source/i.test(
    words,
  )

/** The reason why a job was refused, of the words of sbatch. */
export function refusalIn(words: string): string {
  const reason = /Batch job submission failed: (.*?)(?: sbatch: |$)/.exec(words)?.[1] ?? words
  return reason.replaceAll(/sbatch: (error: )?/g, '').replace(/\.$/, '')
}
