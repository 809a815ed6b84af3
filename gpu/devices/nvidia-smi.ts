import { execa } from 'execa'

/** The result of one run of nvidia-smi. */
export interface ProgramRun {
  exitCode: number | undefined
  /** For example `ENOENT` or `EACCES`, when it did not start. */
  errorCode?: string
  timedOut: boolean
  stdout: string
  stderr: string
}

export interface RunOptions {
  /** Only `PATH`, to find nvidia-smi, and `LD_LIBRARY_PATH` of this environment are used. */
  environment?: Readonly<Record<string, string | undefined>>
  timeoutMs?: number
}

/** Runs nvidia-smi with these arguments. Never throws. */
export async function nvidiaSmi(
  args: readonly string[],
  { environment = {}, timeoutMs = 10_000 }: RunOptions,
): Promise<ProgramRun> {
  const env: Record<string, string> = { LC_ALL: 'C', PATH: environment.PATH ?? '/usr/local/bin:/usr/bin:/bin' }
  if (environment.LD_LIBRARY_PATH) env.LD_LIBRARY_PATH = environment.LD_LIBRARY_PATH
  try {
    const done = await execa('nvidia-smi', args, {
      env,
      extendEnv: false,
      stdin: 'ignore',
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      maxBuffer: 4 << 20,
      reject: false,
    })
    return {
      exitCode: done.exitCode,
      errorCode: done.exitCode === undefined && !done.timedOut ? done.code : undefined,
      timedOut: done.timedOut,
      stdout: done.stdout,
      stderr: done.stderr,
    }
  } catch (cause) {
    return { exitCode: undefined, errorCode: String(cause), timedOut: false, stdout: '', stderr: '' }
  }
}
