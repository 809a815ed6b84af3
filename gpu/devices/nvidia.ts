import type { ProgramRun } from '../sandbox/program.ts'
import { type Device, noReadings } from './device.ts'
import type { Slice } from './mig.ts'

/**
 * The queried fields, in this order. An old driver that does not know one of them exits with 2; `fewFields` are known
 * to every driver since 2013. Source: `nvidia-smi --help-query-gpu`; the exit codes from its manual page.
 */
export const fields = [
  'index',
  'uuid',
  'name',
  'driver_version',
  'compute_cap',
  'memory.total',
  'memory.used',
  'mig.mode.current',
  'utilization.gpu',
  'temperature.gpu',
  'power.draw',
  'power.limit',
] as const
export const fewFields = fields.filter(name => name !== 'compute_cap' && name !== 'mig.mode.current')

export const queryArguments = (queried: readonly string[]): string[] => [
  `--query-gpu=${queried.join(',')}`,
  '--format=csv,noheader,nounits',
]

const mebibyte = 2 ** 20
const unknown = /^(\[.*\]|N\/A|Not Supported|Unknown Error|Insufficient Permissions|GPU is lost)?$/i

/** A value of the CSV output; null for the words by which nvidia-smi reports that there is none, such as `[N/A]`. */
export const valueOrNull = (value: string): string | null => (unknown.test(value.trim()) ? null : value.trim())

/** The words for memory that a card does not have: its memory is the main memory. A lost card has others. */
const noOwnMemory = /^\[?(N\/A|Not Supported)\]?$/i

/**
 * Parses the cards from the CSV output. A line without index or memory is a card that cannot be used and is left out.
 * A card in MIG mode needs no memory, because only its slices are used; one without own memory (GB10, Jetson) has that of
 * the machine.
 */
export function parseCards(csv: string, queried: readonly string[]) {
  return csv.split('\n').flatMap(line => {
    const values = line.split(',')
    if (values.length !== queried.length) return []
    const at = (name: string): string | null => valueOrNull(values[queried.indexOf(name)] ?? '')
    const number = (name: string): number | null => {
      const value = Number(at(name) ?? Number.NaN)
      return Number.isFinite(value) && value >= 0 ? value : null
    }
    const index = number('index')
    const total = number('memory.total') ?? 0
    const mig = at('mig.mode.current') === 'Enabled'
    const isUnified =
      !mig && ['memory.total', 'memory.used'].every(name => noOwnMemory.test(values[queried.indexOf(name)]!.trim()))
    if (index === null || (total === 0 && !mig && !isUnified)) return []
    const used = number('memory.used')
    const percent = number('utilization.gpu')
    return {
      index,
      uuid: at('uuid') ?? '',
      name: at('name') ?? 'NVIDIA GPU',
      driver: at('driver_version'),
      computeCapability: at('compute_cap'),
      /** 0 for a card in MIG mode whose total memory cannot be read, as in most containers. */
      totalBytes: total * mebibyte,
      usedBytes: used === null ? null : used * mebibyte,
      isUnified,
      mig,
      readings: {
        utilization: percent === null ? null : Math.min(1, percent / 100),
        temperatureCelsius: number('temperature.gpu'),
        powerWatts: number('power.draw'),
        powerLimitWatts: number('power.limit'),
      },
    }
  })
}

/**
 * Cards and slices as devices. A card in MIG mode cannot be used as a whole, only its slices can. `mainBytes`: the memory
 * of the machine.
 */
export function devicesOf(cards: ReturnType<typeof parseCards>, slices: readonly Slice[], mainBytes = 0): Device[] {
  return cards.flatMap((card): Device[] => {
    const { index, name, isUnified, readings } = card
    const totalBytes = isUnified ? mainBytes : card.totalBytes
    const usedBytes = isUnified ? null : card.usedBytes
    const whole = { kind: 'nvidia' as const, name, totalBytes, usedBytes, cores: null }
    const own = { id: `gpu${index}`, cudaId: String(index), uuid: card.uuid || null }
    if (!card.mig) return [{ ...whole, ...readings, ...own, ...(isUnified && { isUnified }) }]
    return slices
      .filter(slice => slice.card === index)
      .map(({ profile, totalBytes, usedBytes, uuid }, number) => ({
        ...whole,
        ...noReadings,
        id: `gpu${index}.${number}`,
        name: `${name} MIG ${profile}`,
        totalBytes,
        usedBytes,
        cudaId: uuid,
        uuid: null,
      }))
  })
}

const reasons: Readonly<Record<number, string>> = {
  2: 'This nvidia-smi does not know all fields.',
  9: 'nvidia-smi cannot reach the NVIDIA driver. Check that it is loaded.',
  12: 'The NVIDIA management library (NVML) is missing.',
  15: 'A card has fallen off the bus. Restart the machine.',
}

/** Why a run of nvidia-smi failed, as a sentence; null when it succeeded. */
export function problemOf(run: ProgramRun): { retryWithFewFields: boolean; broken: boolean; reason: string } | null {
  const message = (run.stderr.trim() || run.stdout.trim()).split('\n')[0]!.slice(0, 200)
  const problem = (reason: string, broken: boolean) => ({ reason, broken, retryWithFewFields: run.exitCode === 2 })
  if (run.errorCode === 'ENOENT') return problem('nvidia-smi is not installed, so no NVIDIA card is used.', false)
  if (run.errorCode) return problem(`nvidia-smi cannot be run (${run.errorCode}).`, true)
  if (run.timedOut) return problem('nvidia-smi does not answer; the driver may hang.', true)
  if (/No devices were found/i.test(run.stdout + run.stderr) || run.exitCode === 6)
    return problem('The NVIDIA driver is installed but finds no card.', false)
  if (run.exitCode === 0) return null
  const reason = reasons[run.exitCode ?? -1]
  return problem(reason ?? `nvidia-smi failed (${run.exitCode ?? 'killed'})${message ? `: ${message}` : ''}.`, true)
}
