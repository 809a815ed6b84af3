import { setTimeout as delay } from 'node:timers/promises'
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { type Api, type Client, dataOf, openClient } from '../client/client.ts'
import { storedSentence } from '../client/refusal.ts'
import { whenText } from '../status/pause-text.ts'
import { poolText } from '../status/pool-text.ts'
import { interruptible } from '../terminal/interruption.ts'
import { type CommonOptions, collect, readDuration, withCommon, withExamples } from '../terminal/options.ts'
import { sizeText, timeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

type Status = Api['GpuStatus']
type Pause = Api['DevicePause']

/** `infer gpu …`: lists the devices, and gives them to other programs. */
export function define(command: Command, terminal: Terminal): void {
  defineList(command.command('list'), terminal)
  definePause(command.command('pause'), terminal)
  defineResume(command.command('resume'), terminal)
  withExamples(command, [
    ['infer gpu list', 'memory, models and other programs on each device'],
    ['infer gpu pause --for 2h', 'give the GPUs to a game or a training'],
    ['infer gpu resume', 'use them again now'],
  ])
}

function defineList(command: Command, terminal: Terminal): void {
  const list = withCommon(command)
    .summary('list GPUs, what is on them, and their pauses')
    .description(
      'Lists the GPUs and the processor: memory, models, other programs, and until when they are paused; then the pauses with their ids.',
    )
    .action(async ({ dataDir, json }) => {
      const status = await dataOf(openClient(dataDir).api.GET('/api/gpu'))
      if (json) return terminal.json(status)
      drawList(status, terminal)
    })
  withExamples(list, [
    ['infer gpu list', 'as a table'],
    ['infer gpu list --json', 'for a program'],
  ])
}

function drawList({ devices, left_devices, pools, engines, pauses }: Status, terminal: Terminal): void {
  terminal.table(
    ['device', 'name', 'used', 'booked', 'memory', 'models', 'state'],
    devices.map(({ id, name, used_bytes, booked_bytes, total_bytes, fault, paused }) => [
      id,
      printable(name),
      used_bytes === null ? '-' : sizeText(used_bytes),
      sizeText(booked_bytes),
      sizeText(total_bytes),
      printable([...new Set(modelsOn(id, engines))].join(', ')) || '-',
      paused ? 'paused' : fault ? 'not used' : 'used',
    ]),
    { optional: ['booked', 'name'] },
  )
  for (const { id, fault, paused } of devices) {
    if (paused) terminal.remark(storedSentence(paused.reason))
    if (fault) terminal.remark(`${id} is not used: ${storedSentence(fault)}`)
  }
  for (const { reason } of left_devices) terminal.remark(storedSentence(reason))
  // An older server has none.
  for (const pool of pools ?? []) terminal.remark(poolText(pool))
  const others = devices.flatMap(({ id, processes }) =>
    (processes ?? [])
      .filter(({ engine_id }) => engine_id === null)
      .map(({ pid, name, bytes }) => [id, String(pid), printable(name ?? '-'), bytes === null ? '-' : sizeText(bytes)]),
  )
  if (others.length > 0) {
    terminal.print('')
    terminal.table(['device', 'pid', 'other program', 'memory'], others)
  }
  if (pauses.length === 0) return
  terminal.print('')
  terminal.table(
    ['pause', 'devices', 'when', 'now'],
    pauses.map(pause => [
      pause.id,
      pause.devices?.join(', ') ?? 'all GPUs',
      printable(whenText(pause)),
      nowText(pause),
    ]),
  )
}

const modelsOn = (device: string, engines: Status['engines']): string[] =>
  engines.filter(({ devices }) => devices.includes(device)).map(({ model_id }) => model_id)

const at = (seconds: number): string => timeText(seconds * 1000)

function nowText({ paused_devices, ends_at, next_at }: Pause): string {
  if (paused_devices.length > 0)
    return `pauses ${paused_devices.join(', ')}${ends_at === null ? '' : ` until ${at(ends_at)}`}`
  return next_at === null ? '-' : `next ${at(next_at)}`
}

/** Reads a time that is to come, as epoch milliseconds: `18:30` by the clock of this machine, or a date with a time. */
export function readFuture(text: string, now = Date.now()): number {
  const [, hour, minute] = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(text) ?? []
  const given = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  let time = given
  if (hour !== undefined) {
    const day = new Date(now)
    time = day.setHours(Number(hour), Number(minute), 0, 0)
    if (time <= now) time = day.setDate(day.getDate() + 1)
  }
  if (Number.isNaN(time)) throw new InvalidArgumentError('Write it as 18:30 or 2026-12-31T18:30.')
  if (time <= now) throw new InvalidArgumentError('That time is in the past. Give a later one.')
  return time
}

interface PauseOptions extends CommonOptions {
  device?: string[]
  until?: number
  for?: number
  when?: string
  schedule?: string
  timezone?: string
  now?: true
}

function definePause(command: Command, terminal: Terminal): void {
  const pause = withCommon(command)
    .summary('give GPUs to other programs')
    .description(
      'Gives GPUs to other programs and waits until their memory is free. Running requests end first; further ones wait in their order, unless another device has room for their model. The server uses the GPUs again by itself, also after a restart. Ctrl-C stops waiting, not the pause.',
    )
    .option('--device <device>', 'a GPU by number, id, UUID or name, or cpu; repeatable; default: all GPUs', collect)
    .option('--until <time>', 'when it ends: 18:30, or 2026-12-31T18:30', text => readFuture(text))
    .option('--for <duration>', 'how long it lasts: 30m, 2h, 3d', readDuration)
    .option('--when <condition>', 'pause while a program runs: process:NAME')
    .option('--schedule <cron>', 'pause again and again from these times on, as "0 18 * * 1-5"; needs --for')
    .option('--timezone <zone>', 'time zone of --schedule; default: that of the machine')
    .option('--now', 'end running requests too; those that have sent nothing wait again')
    .action((options: PauseOptions) => interruptible(terminal, signal => pauseDevices(options, terminal, signal)))
  withExamples(pause, [
    ['infer gpu pause', 'all GPUs, until infer gpu resume'],
    ['infer gpu pause --device 0 --for 2h', 'one GPU for two hours'],
    ['infer gpu pause --when process:blender', 'whenever a program runs'],
    ['infer gpu pause --schedule "0 18 * * *" --for 12h', 'every night'],
  ])
}

async function pauseDevices(options: PauseOptions, terminal: Terminal, signal: AbortSignal): Promise<void> {
  const { dataDir, json, device: devices, until, for: forMs, ...rest } = options
  const client = openClient(dataDir)
  const body = {
    ...(devices && { devices }),
    ...(until !== undefined && { until: Math.ceil(until / 1000) }),
    ...(forMs !== undefined && { for: Math.max(1, Math.round(forMs / 1000)) }),
    ...rest,
  }
  const answer = await dataOf(client.api.POST('/api/gpu/pause', { params: { query: { wait: 1 } }, body, signal }))
  const { pause } = answer
  await untilFree(client, answer, pause.paused_devices, terminal, signal)
  terminal.result(json, pause, pausedText(pause))
}

/** Waits until no engine is on these devices. */
async function untilFree(
  { api }: Client,
  first: Status,
  devices: readonly string[],
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  for (let status = first; ; status = await dataOf(api.GET('/api/gpu', { signal }))) {
    const left = status.engines.filter(engine => engine.devices.some(id => devices.includes(id)))
    const paused = status.devices.some(({ id, paused }) => devices.includes(id) && paused !== null)
    if (left.length === 0 || !paused) return
    const busy = left.reduce((sum, engine) => sum + engine.busy, 0)
    terminal.waiting(
      busy === 0
        ? 'Waiting for the engines to end'
        : `Waiting for ${busy === 1 ? 'one request' : `${busy} requests`} to end`,
    )
    await delay(500, undefined, { signal })
  }
}

function pausedText(pause: Pause): string {
  const { id, paused_devices: paused, ends_at: ends } = pause
  const rule = pause.schedule || pause.when ? ` Remove it with: infer gpu resume --pause ${id}` : ''
  if (paused.length === 0) return `The pause is kept: ${printable(whenText(pause))}. It pauses nothing now.${rule}`
  const end = ends === null ? '' : ` until ${at(ends)}`
  const what = paused.length === 1 ? `${paused[0]} is paused${end}` : `${paused.join(', ')} are paused${end}`
  return `${what}, and no model is on ${paused.length === 1 ? 'it' : 'them'}.${rule || ' Use again with: infer gpu resume'}`
}

function defineResume(command: Command, terminal: Terminal): void {
  const resume = withCommon(command)
    .summary('use paused GPUs again')
    .description(
      'Ends what pauses the GPUs now. A pause with --schedule or --when pauses them again at its next time; remove it with --pause.',
    )
    .option(
      '--device <device>',
      'a GPU by number, id, UUID or name, or cpu; repeatable; default: all that are paused',
      collect,
    )
    .option('--pause <id>', 'remove this pause, as infer gpu list shows it')
    .action(async ({ dataDir, json, device: devices, pause }) => {
      const body = { ...(devices && { devices }), ...(pause !== undefined && { pause }) }
      const answer = await dataOf(openClient(dataDir).api.POST('/api/gpu/resume', { body }))
      const { resumed, devices: all } = answer
      const still = all.flatMap(({ paused }) => (paused ? [` ${storedSentence(paused.reason)}`] : []))
      const done = pause === undefined ? 'Nothing was paused there.' : `The pause ${pause} is removed.`
      const names = resumed.join(', ')
      const text = resumed.length > 0 ? `${names} ${resumed.length === 1 ? 'is' : 'are'} used again.` : done
      terminal.result(json, answer, `${text}${still.join('')}`)
    })
  withExamples(resume, [
    ['infer gpu resume', 'all GPUs'],
    ['infer gpu resume --device 1', 'one of them'],
    ['infer gpu resume --pause pause_01K…', 'remove a schedule or a condition'],
  ])
}
