import type { Device } from './device.ts'

/**
 * Reading nvidia-smi. Source: its `--help-query-gpu`; the exit codes from its manual page.
 * Fields in the order they are asked for; an old driver that does not know one of them exits 2, and the short list
 * holds what every driver since 2013 knows.
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
] as const
export const fewFields = ['index', 'uuid', 'name', 'memory.total', 'memory.used', 'driver_version'] as const

/** The arguments that ask for a list of fields. */
export const queryArguments = (of: readonly string[]): string[] => [
  `--query-gpu=${of.join(',')}`,
  '--format=csv,noheader,nounits',
]

export interface Card {
  index: number
  uuid: string
  name: string
  driver: string | null
  computeCapability: string | null
  totalBytes: number
  usedBytes: number | null
  mig: boolean
}

const mebibyte = 2 ** 20
const unknown = /^\[?(N\/A|Not Supported|Unknown Error|Insufficient Permissions|GPU is lost)\]?$/i

/** The cards of one CSV answer. A line that lacks an index or its memory is a card that cannot be used: left out. */
export function parseCards(csv: string, of: readonly string[]): Card[] {
  const cards: Card[] = []
  for (const line of csv.split('\n')) {
    const values = line.split(',').map(value => value.trim())
    if (values.length !== of.length) continue
    const at = (name: string): string | null => {
      const value = values[of.indexOf(name)]
      return value === undefined || value === '' || unknown.test(value) ? null : value
    }
    const number = (name: string): number | null => {
      const value = Number(at(name) ?? Number.NaN)
      return Number.isFinite(value) && value >= 0 ? value : null
    }
    const index = number('index')
    const total = number('memory.total')
    if (index === null || total === null || total === 0) continue
    const used = number('memory.used')
    cards.push({
      index,
      uuid: at('uuid') ?? '',
      name: at('name') ?? 'NVIDIA GPU',
      driver: at('driver_version'),
      computeCapability: at('compute_cap'),
      totalBytes: total * mebibyte,
      usedBytes: used === null ? null : used * mebibyte,
      mig: at('mig.mode.current') === 'Enabled',
    })
  }
  return cards
}

export interface Slice {
  card: number
  uuid: string
  profile: string
  totalBytes: number
}

/**
 * The MIG slices of `nvidia-smi -L`. Memory is read off the profile's name (`1g.18gb`), less a twentieth: a slice
 * holds a little less than it is called, and booking too little is what makes engines die.
 */
export function parseSlices(listing: string): Slice[] {
  const slices: Slice[] = []
  let card = -1
  for (const line of listing.split('\n')) {
    const parent = /^GPU (\d+):/.exec(line)
    if (parent) card = Number(parent[1])
    const slice = /^\s+MIG (\S+)\s+Device\s+\d+:\s+\(UUID: (MIG-[^)]+)\)/.exec(line)
    const size = slice && /(\d+)gb/.exec(slice[1]!)
    if (slice && size && card >= 0)
      slices.push({
        card,
        profile: slice[1]!,
        uuid: slice[2]!,
        totalBytes: Math.floor(Number(size[1]) * 2 ** 30 * 0.95),
      })
  }
  return slices
}

/** Cards and slices as devices: a card in MIG mode is not usable as a whole, only its slices are. */
export function devicesOf(cards: readonly Card[], slices: readonly Slice[]): Device[] {
  return cards.flatMap((card): Device[] => {
    if (!card.mig)
      return [
        {
          id: `gpu${card.index}`,
          kind: 'nvidia',
          name: card.name,
          totalBytes: card.totalBytes,
          usedBytes: card.usedBytes,
          cudaId: String(card.index),
          cores: null,
        },
      ]
    return slices
      .filter(slice => slice.card === card.index)
      .map((slice, place) => ({
        id: `gpu${card.index}.${place}`,
        kind: 'nvidia',
        name: `${card.name} MIG ${slice.profile}`,
        totalBytes: slice.totalBytes,
        usedBytes: null,
        cudaId: slice.uuid,
        cores: null,
      }))
  })
}

/** How one run of nvidia-smi ended. */
export interface Run {
  exitCode: number | undefined
  /** `ENOENT`, `EACCES` and the like when it did not start. */
  errorCode?: string
  timedOut: boolean
  stdout: string
  stderr: string
}

/** What a run that gave no cards means: `again` asks for the short list of fields. */
export function meaning(run: Run): { again: boolean; broken: boolean; reason: string } | null {
  const said = (run.stderr.trim() || run.stdout.trim()).split('\n')[0]!.slice(0, 200)
  const is = (reason: string, broken: boolean, again = false) => ({ again, broken, reason })
  if (run.errorCode === 'ENOENT') return is('nvidia-smi is not installed, so no NVIDIA card is used.', false)
  if (run.errorCode) return is(`nvidia-smi cannot be run (${run.errorCode}).`, true)
  if (run.timedOut) return is('nvidia-smi does not answer; the driver may be hanging.', true)
  if (/No devices were found/i.test(run.stdout + run.stderr) || run.exitCode === 6)
    return is('The NVIDIA driver is there but finds no card.', false)
  if (run.exitCode === 0) return null
  if (run.exitCode === 2) return is('This nvidia-smi does not know all fields.', true, true)
  if (run.exitCode === 9) return is('nvidia-smi cannot talk to the NVIDIA driver; is it loaded?', true)
  if (run.exitCode === 12) return is('The NVIDIA management library (NVML) is missing.', true)
  if (run.exitCode === 15) return is('A card has fallen off the bus; the machine needs a restart.', true)
  return is(`nvidia-smi failed (${run.exitCode ?? 'killed'})${said ? `: ${said}` : ''}.`, true)
}
