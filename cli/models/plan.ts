import type { Command } from '@commander-js/extra-typings'
import { type Api, dataOf, openClient } from '../client/client.ts'
import { storedSentence } from '../client/refusal.ts'
import { commandName, withCommon, withExamples } from '../terminal/options.ts'
import { lengthText, sizeText, timeText, tookText } from '../terminal/quantities-text.ts'
import { type Paint, printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { benchmarkLines } from './benchmark-text.ts'
import { longerContextLines } from './longer-context.ts'

type Plan = Api['ModelPlan']
type Device = Plan['devices'][number]

/** `infer model plan <id>`: explains what happens if a request for a model comes now. */
export function define(command: Command, terminal: Terminal): void {
  const plan = withCommon(command)
    .summary('explain where a model would be loaded now')
    .description(
      'Explains what happens if a request for a model comes now: which engines are unloaded, where it is loaded, how long that takes, why, and from which figures. Names what the configuration gives the model: other names, fallbacks, adapters, guessed tokens, saved conversations, a schedule. Loads nothing.',
    )
    .argument('<name>', 'the id of the model, or another name of it')
    .action(async (name, { dataDir, json }) => {
      const { api } = openClient(dataDir)
      const answer = await dataOf(api.GET('/api/plan', { params: { query: { model: name } } }))
      terminal.result(json, answer, planLines(answer, terminal.paint).join('\n'))
    })
  withExamples(plan, [
    [`${commandName(command)} qwen3-8b`, 'as text, with a drawing of each GPU'],
    [`${commandName(command)} qwen3-8b --json`, 'the response of the API'],
  ])
}

/** Returns the text for a terminal. */
function planLines(plan: Plan, paint: Paint): string[] {
  const { model_id, status, detail, advice, eta_seconds, evict, waits_for, figures } = plan
  const name = printable(model_id)
  const lines = [`${paint.strong(name)}  ${lookOf(status, paint)(status)}`]
  if (plan.requested_name) lines.push(storedSentence(plan.requested_name.detail))
  lines.push(storedSentence(detail))
  if (advice) lines.push(storedSentence(advice))
  // The sentence of a load has its time; models that are loaded first come before it.
  const said = status === 'load' ? Math.ceil(figures.load_ms / 1_000) : 0
  if (eta_seconds && eta_seconds > said) lines.push(`The request begins in about ${lengthText(eta_seconds)}.`)
  if (plan.fallback) lines.push(storedSentence(plan.fallback.detail))
  if (plan.placement) lines.push(`It runs ${printable(plan.placement.detail)}.`, ...longerContextLines(plan.placement))
  const waited = new Set(waits_for.map(({ engine_id }) => engine_id))
  const moves = [
    ...evict.filter(({ engine_id }) => !waited.has(engine_id)).map(one => ['unloads', one] as const),
    ...waits_for.map(one => ['waits for', one] as const),
  ].map(([what, { model_id: other, why }]) => `${what} ${nameOf(other)}: ${storedSentence(why)}`)
  if (moves.length > 0) lines.push('', ...moves)
  for (const device of plan.devices) lines.push('', ...deviceLines(device, name, paint))
  if (plan.left_devices.length > 0) lines.push('', ...plan.left_devices.map(one => storedSentence(one.reason)))
  // An older server has none.
  const schedule = (plan.schedule ?? []).map(({ action, next_at, until }) =>
    until === null
      ? `schedule: ${action} at ${timeText(next_at * 1_000)}`
      : `schedule: kept loaded until ${timeText(until * 1_000)}`,
  )
  const threads = plan.threads === null ? [] : [`threads ${plan.threads.count} (${printable(plan.threads.reason)})`]
  // An older server has none.
  const adapters = (plan.adapters ?? []).map(({ model_id, bytes, fault }) => {
    const size = bytes === null ? '' : `, ${sizeText(bytes)}`
    return `adapter ${printable(model_id)}${fault === null ? size : `: ${storedSentence(fault)}`}`
  })
  const saved = savedLines(plan)
  const upcoming = plan.upcoming ? [plan.upcoming] : []
  const measured = plan.benchmark === null ? [] : benchmarkLines(plan.benchmark, Date.now() / 1_000)
  // An older server has none.
  const parking = plan.parking ? [storedSentence(plan.parking)] : []
  const faint = [
    ...figuresLines(figures),
    ...threads,
    ...parking,
    ...namesLines(plan),
    ...adapters,
    ...featureLines(plan),
    ...upcoming,
    ...schedule,
    ...saved,
    ...measured,
  ]
  return [...lines, '', ...faint.map(paint.faint)]
}

/** Lines about saved conversations, or why none are; none from an older server, and for a model without any. */
function savedLines({ saved_conversations: saved, saved_detail }: Partial<Plan>): string[] {
  const count = saved ? [`saved conversations ${saved.conversations}, ${sizeText(saved.bytes)} of main memory`] : []
  return [...count, ...(saved_detail ? [storedSentence(saved_detail)] : [])]
}

/** The other names of the model; an older server has none. */
function namesLines({ names = [], model_id }: Partial<Plan>): string[] {
  const listed = (kind: 'alias' | 'profile') =>
    names
      .filter(one => one.kind === kind)
      .map(({ name, of }) => (of === model_id ? printable(name) : `${printable(name)} (of ${printable(of)})`))
  const [aliases, profiles] = [listed('alias'), listed('profile')]
  return [
    ...(aliases.length > 0 ? [`aliases ${aliases.join(', ')}`] : []),
    ...(profiles.length > 0 ? [`profiles ${profiles.join(', ')}`] : []),
  ]
}

/** What else the configuration gives the model, as sentences; an older server has none. */
const featureLines = ({ fallbacks = [], affinity, guessed_tokens }: Partial<Plan>): string[] =>
  [...fallbacks, affinity, guessed_tokens].flatMap(one => (one ? [storedSentence(one.detail)] : []))

const lookOf = (status: Plan['status'], paint: Paint) =>
  ({ ready: paint.good, load: paint.good, loading: paint.warning, wait: paint.warning, refused: paint.bad })[status]

const nameOf = (modelId: string | null): string => (modelId === null ? 'another model' : printable(modelId))

/** Columns of a device's memory. */
const cells = 48

/** Draws the memory of a device, now and with the model, and lists what is on it. */
function deviceLines(device: Device, name: string, paint: Paint): string[] {
  const { id, memory_bytes, free_bytes, needed_bytes, engines, fault, paused } = device
  if (fault) return [`${paint.name(id)}  is not used: ${storedSentence(fault)}`]
  const lettered = engines.map((engine, at) => ({ ...engine, letter: String.fromCharCode(65 + (at % 26)) }))
  const draw = (parts: readonly { letter: string; memory_bytes: number }[]): string =>
    parts
      .map(part => part.letter.repeat(Math.max(1, Math.round((part.memory_bytes / memory_bytes) * cells))))
      .join('')
      .slice(0, cells)
      .padEnd(cells, '·')
  const lines = [
    `${paint.name(id)}  ${sizeText(memory_bytes)} for models, ${sizeText(free_bytes)} free`,
    ...(paused ? [`  ${paint.warning(storedSentence(paused))}`] : []),
    `  now   ${draw(lettered)}`,
  ]
  if (needed_bytes > 0) {
    const staying = lettered.filter(({ evicted }) => !evicted)
    lines.push(`  then  ${draw([...staying, { letter: '+', memory_bytes: needed_bytes }])}`)
  }
  for (const { letter, model_id, memory_bytes: bytes, evicted, kept_loaded } of lettered)
    lines.push(
      `  ${letter}  ${nameOf(model_id)}, ${sizeText(bytes)}${evicted ? ', is unloaded' : ''}${kept_loaded ? ', kept loaded' : ''}`,
    )
  if (needed_bytes > 0) lines.push(`  +  ${name}, ${sizeText(needed_bytes)}, is loaded`)
  return lines
}

const origin = {
  configured: 'configured',
  estimated: 'estimated',
  measured: 'measured',
  unknown: 'not known',
  other_models: 'from the loads of other models',
  size: 'estimated from its size',
}

function figuresLines({
  memory_bytes,
  memory_from,
  load_ms,
  load_ms_from,
  run_ms,
  slots,
  order_bound,
}: Plan['figures']) {
  const runs = run_ms === null ? 'not measured' : tookText(run_ms)
  return [
    `memory ${sizeText(memory_bytes)} (${origin[memory_from]}), load ${tookText(load_ms)} (${origin[load_ms_from]})`,
    `request ${runs}, slots ${slots}, order_bound ${order_bound}`,
  ]
}
