import { moneyText } from '../../core/money-text.ts'
import type { Api } from '../client/client.ts'
import { lengthText, rateText, readingsText, sizeText } from '../terminal/quantities-text.ts'
import { drawLine, lineWidth, type Paint, padded, type StyledLine, wrapText } from '../terminal/styled-line.ts'
import { memoryNotes } from './memory-notes.ts'
import { modelLines } from './models.ts'
import { peerText } from './peer-text.ts'
import { layersText, placementNotes } from './placement-notes.ts'
import { poolText } from './pool-text.ts'

/** Available columns and lines. A height of 0 means no limit. */
interface ScreenSize {
  width: number
  height: number
}

const blank: StyledLine = []
const heading = (text: string): StyledLine => [{ text, look: 'strong' }]

/** A line about saved conversations; none from an older server, and while there is nothing to say. */
function savedLines(saved: Api['SystemStatus']['saved_conversations'] | undefined): StyledLine[] {
  if (saved?.fault) return [[{ text: `Conversations are not saved: ${saved.fault}`, look: 'faint' }]]
  if (!saved || saved.conversations === 0) return []
  const { conversations, bytes, limit_bytes } = saved
  const count = conversations === 1 ? '1 conversation is' : `${conversations} conversations are`
  return [[{ text: `${count} saved: ${sizeText(bytes)} of ${sizeText(limit_bytes)}`, look: 'faint' }]]
}

/** Draws the status in lines that fit the width and the height. */
export function drawStatus(
  snapshot: Api['SystemStatus'],
  url: string,
  { width, height }: ScreenSize,
  paint: Paint,
): string[] {
  const lines: StyledLine[] = [
    ...headLines(snapshot, url, width),
    blank,
    heading('Devices'),
    ...snapshot.devices.flatMap(device => deviceLines(device, snapshot, width)),
    // An older server has none.
    ...(snapshot.left_devices ?? []).map((one): StyledLine => [{ text: one.reason, look: 'faint' }]),
    ...(snapshot.pools ?? []).map((pool): StyledLine => [{ text: poolText(pool) }]),
    ...(snapshot.peers ?? []).map((peer): StyledLine => [{ text: peerText(peer) }]),
    ...savedLines(snapshot.saved_conversations),
    ...elsewhere(snapshot),
    ...noteLines(snapshot, width),
    blank,
    heading('Models'),
    ...(snapshot.models.length > 0
      ? modelLines(snapshot.models, width)
      : [[{ text: 'No model is configured. Add one: infer model add <file.gguf>' }]]),
    ...waitingLines(snapshot),
    ...limitLines(snapshot.limits, snapshot.spend),
  ]
  const room = height > 0 ? Math.max(1, height) : lines.length
  const drawn = lines.slice(0, room).map(line => drawLine(line, width, paint))
  if (lines.length > room) drawn[room - 1] = paint.faint(`… ${lines.length - room + 1} more lines`.slice(0, width))
  return drawn
}

function headLines(
  { version, time, started_at, requests, jobs, models }: Api['SystemStatus'],
  url: string,
  width: number,
): StyledLine[] {
  const rate = models.reduce((sum, model) => sum + model.output_tokens_per_second, 0)
  const facts = [
    `${rateText(rate)} tokens/s`,
    // Without the status request itself.
    count(Math.max(0, requests - 1), 'request'),
    `${count(jobs.processing, 'job')} running, ${jobs.pending} waiting`,
  ]
  const up = `up ${lengthText(time - started_at)}`
  const name = `infer ${version}`
  return [
    [
      { text: name, look: 'strong' },
      { text: `  ${url}`, look: 'name' },
      ...(name.length + url.length + up.length + 4 <= width ? [{ text: `  ${up}`, look: 'faint' } as const] : []),
    ],
    [{ text: facts.join('  ') }],
  ]
}

function deviceLines(device: Api['DeviceStatus'], { engines, time }: Api['SystemStatus'], width: number): StyledLine[] {
  const { id, name, used_bytes, booked_bytes, total_bytes } = device
  const title = name === id ? id : `${id} ${name}`
  const figures = [
    used_bytes === null ? 'not measured' : `${sizeText(used_bytes)} used`,
    `${sizeText(booked_bytes)} booked`,
    `of ${sizeText(total_bytes)}`,
  ].join(', ')
  const fault: StyledLine[] = device.fault ? [[{ text: `  is not used: ${device.fault}`, look: 'bad' }]] : []
  const pause: StyledLine[] = device.paused ? [[{ text: `  ${device.paused.reason}`, look: 'warning' }]] : []
  const own = engines
    .filter(engine => engine.devices.includes(id))
    .map(engine => engineLine(shareOf(engine, id), time, width))
  const side = 2 + lineWidth(figures)
  const cells = Math.min(40, width - 24 - side)
  const readings = readingsText({
    utilization: device.utilization,
    temperatureCelsius: device.temperature_celsius,
    powerWatts: device.power_watts,
    powerLimitWatts: device.power_limit_watts,
  })
  const below: StyledLine[] = readings === '' ? [] : [[{ text: `  ${readings}`, look: 'faint' }]]
  // On a narrow terminal the bar is below the title.
  if (cells < 12) {
    const beside = below.length > 0 && lineWidth(title) + 2 + lineWidth(readings) <= width
    return [
      [{ text: title, look: 'name' }, ...(beside ? below.flat() : [])],
      [{ text: '  ' }, ...memoryBar(device, Math.max(4, Math.min(40, width - 4)))],
      [{ text: `  ${figures}`, look: 'faint' }],
      ...(beside ? [] : below),
      ...fault,
      ...pause,
      ...own,
    ]
  }
  return [
    [{ text: padded(title, 23), look: 'name' }, { text: ' ' }, ...memoryBar(device, cells), { text: `  ${figures}` }],
    ...below,
    ...fault,
    ...pause,
    ...own,
  ]
}

/** Maximum number of waiting requests shown. */
const maxWaiting = 5

/** Draws the requests that have waited longest, with their reasons. */
function waitingLines({ waiting }: Api['SystemStatus']): StyledLine[] {
  if (waiting.length === 0) return []
  const shown = waiting.slice(0, maxWaiting).map(waitingLine)
  const more = waiting.length - shown.length
  return [
    blank,
    heading('Waiting requests'),
    ...shown,
    ...(more > 0 ? [[{ text: `  and ${more} more`, look: 'faint' as const }]] : []),
  ]
}

function waitingLine({ id, model_id, waited_ms, waiting_for }: Api['WaitingRequest']): StyledLine {
  const eta = waiting_for?.eta_seconds
  const expected = eta == null ? '' : ` About ${lengthText(eta)} left.`
  return [
    { text: `  ${id}  ` },
    { text: model_id, look: 'name' },
    { text: `  ${lengthText(Math.round(waited_ms / 1000))}  ` },
    { text: `${waiting_for?.detail ?? ''}${expected}`, look: 'faint' },
  ]
}

/** Says why engines do not use the GPUs, and which use more or less memory than was reserved. */
const noteLines = ({ engines }: Api['SystemStatus'], width: number): StyledLine[] =>
  [...placementNotes(engines), ...memoryNotes(engines).map(text => ({ text, isAdvice: false }))].flatMap(
    ({ text, isAdvice }) =>
      wrapText(text, Math.max(20, width - 2)).map(line => [
        { text: `  ${line}`, look: isAdvice ? 'warning' : 'faint' },
      ]),
  )

/** Draws engines that use no device of this machine. */
function elsewhere({ engines, time }: Api['SystemStatus']): StyledLine[] {
  const remote = engines.filter(({ devices }) => devices.length === 0)
  return remote.length === 0
    ? []
    : [[{ text: 'elsewhere', look: 'name' }], ...remote.map(one => engineLine(one, time, 80))]
}

function engineLine(engine: Api['EngineStatus'], time: number, width: number): StyledLine {
  const { model_id, state, memory_bytes, busy, slots, started_at, taken_over_at, pid, placement } = engine
  const since = `${taken_over_at ? 'kept over a restart, ' : ''}since ${lengthText(time - started_at)}`
  const shown = state === 'ready' ? `${busy}/${slots} busy` : state === 'starting' ? 'loading' : state
  const facts = [
    padded(shown, 10),
    ...(memory_bytes > 0 ? [padded(sizeText(memory_bytes), 8, 'right')] : []),
    ...(width >= 70 && placement.layers !== null ? [`${layersText(engine)} layers on GPUs`] : []),
    ...(width >= 50 ? [since] : []),
    ...(width >= 80 && pid !== null ? [`pid ${pid}`] : []),
  ]
  const look = state === 'ready' ? (busy > 0 ? 'good' : undefined) : state === 'parked' ? undefined : 'warning'
  return [
    { text: `  ${padded(model_id, Math.max(8, Math.min(28, width - 24)))} ` },
    { text: facts.join('  '), ...(look ? { look } : {}) },
  ]
}

/** An engine on several devices, with its memory on one of them. */
const shareOf = (engine: Api['EngineStatus'], device: string): Api['EngineStatus'] => ({
  ...engine,
  memory_bytes: engine.device_memory_bytes[engine.devices.indexOf(device)] ?? engine.memory_bytes,
})

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`

/** Returns how many of `cells` a part of a whole fills; at least one for a part above 0. */
function cellsOf(part: number, whole: number, cells: number): number {
  if (part <= 0 || whole <= 0) return 0
  return Math.min(cells, Math.max(1, Math.round((part / whole) * cells)))
}

/**
 * Draws the memory of a device as a bar: full for memory that the driver reports as used, shaded for booked memory
 * beyond that, light for free memory.
 */
export function memoryBar(
  { total_bytes, used_bytes, booked_bytes }: Pick<Api['DeviceStatus'], 'total_bytes' | 'used_bytes' | 'booked_bytes'>,
  cells: number,
): StyledLine {
  const used = cellsOf(used_bytes ?? 0, total_bytes, cells)
  const booked = Math.max(used, cellsOf(booked_bytes, total_bytes, cells))
  const nearlyFull = Math.max(used_bytes ?? 0, booked_bytes) > 0.95 * total_bytes
  return [
    { text: '█'.repeat(used), look: nearlyFull ? 'bad' : 'good' },
    { text: '▒'.repeat(booked - used), look: nearlyFull ? 'bad' : 'warning' },
    { text: '░'.repeat(cells - booked), look: 'faint' },
  ]
}

const names: Record<string, string> = {
  requests_per_minute: 'requests a minute',
  jobs_per_minute: 'submissions a minute',
  tokens_per_minute: 'tokens a minute',
  concurrent_requests: 'requests at a time',
  pending_jobs: 'jobs that wait or run',
  stored_bytes: 'stored files',
  uploads_per_day: 'uploads a day',
}

/** Draws the limits of the token and its organization with what is left of them; nothing without limits. */
export function limitLines(limits: readonly Api['LimitUse'][], spend?: Api['SpendUse']): StyledLine[] {
  const lines = [...limits.map(limitLine), ...(spend ? spendLines(spend) : [])]
  return lines.length === 0 ? [] : [[], [{ text: 'Limits', look: 'strong' }], ...lines]
}

/** Draws the spend limits that exist, with what running work holds of them. */
function spendLines({ currency, ...spend }: Api['SpendUse']): StyledLine[] {
  return (['organization', 'token'] as const).flatMap(limit_of => {
    const { monthly_limit: limit, remaining, held, period_end } = spend[limit_of]
    if (limit === null || remaining === null) return []
    const holds = held > 0 ? `, ${moneyText(held)} held by running work` : ''
    const amounts = `${moneyText(remaining)} of ${moneyText(limit)} ${currency} left${holds}`
    return [
      lineOf(
        ['spending a month', limit_of],
        `${amounts}  all again on ${new Date(period_end * 1000).toISOString().slice(0, 10)}`,
        remaining === 0,
      ),
    ]
  })
}

const lineOf = ([name, of]: readonly [string, string], text: string, usedUp: boolean): StyledLine => [
  { text: `  ${padded(name, 23)}${padded(of, 14)}` },
  { text, ...(usedUp ? { look: 'warning' as const } : {}) },
]

function limitLine({ name, limit_of, limit, remaining, reset_seconds }: Api['LimitUse']): StyledLine {
  const amount = (value: number) => (name === 'stored_bytes' ? sizeText(value) : String(value))
  const reset = reset_seconds === null || remaining === limit ? '' : `  all again in ${lengthText(reset_seconds)}`
  return lineOf(
    [names[name] ?? name, limit_of],
    `${amount(remaining)} of ${amount(limit)} left${reset}`,
    remaining === 0,
  )
}
