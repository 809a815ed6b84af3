import type { DeviceReadings } from '../../core/models/fleet.ts'
import { type Device, noReadings } from './device.ts'
import type { Slice } from './mig.ts'
import type { Run } from './nvidia-smi.ts'

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
  'utilization.gpu',
  'temperature.gpu',
  'power.draw',
  'power.limit',
] as const
export const fewFields = [
  'index',
  'uuid',
  'name',
  'memory.total',
  'memory.used',
  'driver_version',
  'utilization.gpu',
  'temperature.gpu',
  'power.draw',
  'power.limit',
] as const

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
  /** 0 for a card in MIG mode whose own memory may not be read, as in most containers. */
  totalBytes: number
  usedBytes: number | null
  mig: boolean
  readings: DeviceReadings
}

const mebibyte = 2 ** 20
const unknown = /^(\[.*\]|N\/A|Not Supported|Unknown Error|Insufficient Permissions|GPU is lost)?$/i

/** A value of a CSV answer; null where nvidia-smi says in brackets, or without, that there is none. */
export const known = (value: string): string | null => (unknown.test(value.trim()) ? null : value.trim())

/**
 * The cards of one CSV answer. A line that lacks an index or its memory is a card that cannot be used: left out. A card
 * in MIG mode needs no memory of its own, because only its slices are used.
 */
export function parseCards(csv: string, of: readonly string[]): Card[] {
  const cards: Card[] = []
  for (const line of csv.split('\n')) {
    const values = line.split(',')
    if (values.length !== of.length) continue
    const at = (name: string): string | null => known(values[of.indexOf(name)] ?? '')
    const number = (name: string): number | null => {
      const value = Number(at(name) ?? Number.NaN)
      return Number.isFinite(value) && value >= 0 ? value : null
    }
    const index = number('index')
    const total = number('memory.total') ?? 0
    const mig = at('mig.mode.current') === 'Enabled'
    if (index === null || (total === 0 && !mig)) continue
    const used = number('memory.used')
    const percent = number('utilization.gpu')
    cards.push({
      index,
      uuid: at('uuid') ?? '',
      name: at('name') ?? 'NVIDIA GPU',
      driver: at('driver_version'),
      computeCapability: at('compute_cap'),
      totalBytes: total * mebibyte,
      usedBytes: used === null ? null : used * mebibyte,
      mig,
      readings: {
        utilization: percent === null ? null : Math.min(1, percent / 100),
        temperatureCelsius: number('temperature.gpu'),
        powerWatts: number('power.draw'),
        powerLimitWatts: number('power.limit'),
      },
    })
  }
  return cards
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
          ...card.readings,
          cudaId: String(card.index),
          uuid: card.uuid || null,
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
        usedBytes: slice.usedBytes,
        ...noReadings,
        cudaId: slice.uuid,
        uuid: null,
        cores: null,
      }))
  })
}

/** What a run that gave no cards means: `again` asks for the short list of fields. */
export function meaning(run: Run): { again: boolean; broken: boolean; reason: string } | null {
  const message = (run.stderr.trim() || run.stdout.trim()).split('\n')[0]!.slice(0, 200)
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
  return is(`nvidia-smi failed (${run.exitCode ?? 'killed'})${message ? `: ${message}` : ''}.`, true)
}
