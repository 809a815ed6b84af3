import { broken, fine, type InspectionFinding, warning } from '../../core/inspection.ts'
import { faultFinding } from './pool-findings.ts'
import type { Trial } from './trial-launch.ts'

/** What doctor says of a machine that is reached by ssh. Pure. */

/** Prints the programs that are missing, then the free bytes of the file system of the folder. */
export const suppliesScript = (folder: string): string =>
  `for p in flock awk find tar; do command -v $p >/dev/null || printf '%s ' $p; done; echo; d='${folder.replaceAll("'", String.raw`'\''`)}'; until test -d "$d"; do d=$(dirname "$d"); done; df -Pk "$d" | tail -n 1`

export interface Supplies {
  missing: readonly string[]
  freeBytes: number
}

/** What `suppliesScript` has printed. */
export function suppliesIn(text: string): Supplies {
  const [programs = '', space = ''] = text.split('\n')
  return {
    missing: programs.trim() === '' ? [] : programs.trim().split(' '),
    freeBytes: Number(space.trim().split(/\s+/)[3] ?? 0) * 1024,
  }
}

export const programsFinding = ({ missing }: Supplies): InspectionFinding =>
  missing.length === 0
    ? fine('programs there', 'flock, awk, find and tar are installed')
    : broken(
        'programs there',
        `not installed: ${missing.join(', ')}`,
        'Install them there: Debian has them in util-linux, mawk, findutils and tar.',
      )

/** A file or folder of a model, and whether the machine has it. */
export interface FoundModel {
  path: string
  bytes: number
  isThere: boolean
}

/** Whether the files of the models are there, or have room. */
export function modelsFinding(models: readonly FoundModel[], { freeBytes }: Supplies): InspectionFinding {
  const free = `${gigabytes(freeBytes)} are free`
  const missing = models.filter(({ isThere }) => !isThere)
  if (missing.length === 0)
    return fine(
      'model files',
      models.length === 0 ? `none to copy; ${free}` : `all ${models.length} are there; ${free}`,
    )
  const bytes = missing.reduce((sum, one) => sum + one.bytes, 0)
  const detail = `${missing.length} of ${models.length} are not there: ${missing.map(({ path }) => path).join(', ')}`
  if (bytes > freeBytes)
    return broken(
      'model files',
      `${detail}; they have ${gigabytes(bytes)}, and ${free}`,
      'Free space there, or put the files there under the same path: infer copies them when a model is loaded.',
    )
  return warning(
    'model files',
    `${detail}; ${free}`,
    `infer copies ${gigabytes(bytes)} over the connection when the models are loaded.`,
  )
}

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`

/** The checks of `infer doctor` that are about a machine, not about a server on it. */
const aboutMachine =
  /^(program|system library|engines|engine wrapper|engine sandbox|open files|memory|GPUs|GPU use|backend .*)$/

/** The findings about the machine in what `infer doctor --json` has printed there; undefined if it has printed none. */
export function machineFindings(text: string): InspectionFinding[] | undefined {
  try {
    const { findings } = JSON.parse(text) as { findings: InspectionFinding[] }
    return findings.filter(({ name }) => aboutMachine.test(name))
  } catch {
    return undefined
  }
}

/** What a trial engine has shown. */
export function trialFinding(trial: Trial): InspectionFinding {
  if (trial.state === 'answered')
    return fine('trial engine', 'an engine was started there, has answered, and was ended')
  if (trial.state === 'failed')
    return faultFinding(
      'trial engine',
      trial.reason,
      'Run the same command again with --json, and read the log of the server.',
    )
  return broken(
    'trial engine',
    trial.reason.replace(/\.$/, ''),
    'The ssh server there must forward sockets: AllowTcpForwarding yes and AllowStreamLocalForwarding yes in its sshd_config.',
  )
}
