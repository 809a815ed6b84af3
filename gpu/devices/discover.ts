import { execa } from 'execa'
import type { Discovery } from './device.ts'
import { devicesOf, fewFields, fields, meaning, parseCards, parseSlices, queryArguments, type Run } from './nvidia.ts'

export interface DiscoverOptions {
  /** Where nvidia-smi is looked for, and the library path it may need; nothing else of the host's environment is used. */
  environment?: Record<string, string | undefined>
  timeoutMs?: number
}

/** The NVIDIA cards of this machine. Never throws: what is wrong stands in `reason`. */
export async function discover({ environment = {}, timeoutMs = 10_000 }: DiscoverOptions = {}): Promise<Discovery> {
  const smi = (args: string[]) => run(args, environment, timeoutMs)
  let of: readonly string[] = fields
  let answer = await smi(queryArguments(of))
  if (meaning(answer)?.again) {
    of = fewFields
    answer = await smi(queryArguments(of))
  }
  const wrong = meaning(answer)
  if (wrong) return { devices: [], reason: wrong.reason, broken: wrong.broken }
  const cards = parseCards(answer.stdout, of)
  const slices = cards.some(card => card.mig) ? parseSlices((await smi(['-L'])).stdout) : []
  const devices = devicesOf(cards, slices)
  const reason = devices.length > 0 ? null : 'nvidia-smi answered, but with no card that can be used.'
  return { devices, reason, broken: devices.length === 0 }
}

async function run(args: string[], from: Record<string, string | undefined>, timeout: number): Promise<Run> {
  const env: Record<string, string> = { LC_ALL: 'C', PATH: from.PATH ?? '/usr/local/bin:/usr/bin:/bin' }
  if (from.LD_LIBRARY_PATH) env.LD_LIBRARY_PATH = from.LD_LIBRARY_PATH
  try {
    const done = await execa('nvidia-smi', args, {
      env,
      extendEnv: false,
      stdin: 'ignore',
      timeout,
      killSignal: 'SIGKILL',
      maxBuffer: 1 << 20,
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
