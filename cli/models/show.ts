import { join } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { dataDirectory, remoteServer } from '../../core/config.ts'
import { Failure } from '../../core/failure.ts'
import { readConfig } from '../../core/models/config.ts'
import { offeredModels } from '../../core/models/defaults.ts'
import { namesOf } from '../../core/models/model-names.ts'
import { openClient } from '../client/client.ts'
import { runningServer } from '../client/find-server.ts'
import { storedSentence } from '../client/refusal.ts'
import { shellWord } from '../serve/try-next.ts'
import { commandName, withCommon, withExamples } from '../terminal/options.ts'
import { lengthText, placesText, sizeText } from '../terminal/quantities-text.ts'
import { type Paint, printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { benchmarkLines } from './benchmark-text.ts'
import { modelStatusText } from './list.ts'
import { longerContextLines } from './longer-context.ts'
import { detailOf, type ModelDetail } from './status.ts'

/** `infer model show <id>`: shows a model with all its settings and, if a server runs, its engines. */
export function define(command: Command, terminal: Terminal): void {
  const show = withCommon(command)
    .summary('show all settings and engines of a model')
    .description('Shows a model: its status, its engines, and every setting with its value.')
    .argument('<id>', 'the model')
    .option('--config <path>', 'the configuration to read when no server runs')
    .action(async (id, { dataDir, config, json }) => {
      const folder = dataDirectory(dataDir)
      const live = remoteServer() !== undefined || runningServer(folder) !== undefined
      const detail = live ? await detailOf(openClient(folder), id) : configured(id, config, folder)
      if (json) return terminal.json(detail)
      terminal.print(modelLines(detail, terminal.paint, Date.now()).join('\n'))
      if (!live) terminal.remark('No server is running; this is the configuration. Start it with: infer serve')
    })
  withExamples(show, [
    [`${commandName(command)} qwen3-8b`, 'as text'],
    [`${commandName(command)} qwen3-8b --json`, 'the response of the API'],
  ])
}

function configured(id: string, path: string | undefined, dataDir: string): ModelDetail {
  const file = path ?? join(dataDir, 'infer.yaml')
  const model = offeredModels(readConfig(file, path !== undefined)).find(one => namesOf(one).includes(id))
  if (!model) throw new Failure('model_not_found', `${file} has no model '${id}'. See: infer model list`)
  const { env, ...settings } = model
  return {
    id: model.id,
    settings: { ...settings, env: Object.fromEntries(Object.keys(env).map(name => [name, '***'])) },
    status: {
      model_id: model.id,
      status: model.enabled ? 'configured' : 'disabled',
      tasks: model.tasks,
      engine: model.engine,
    },
    engines: [],
  }
}

/** Returns the text for a terminal. `now` is in epoch milliseconds. */
function modelLines({ id, settings, status, engines }: ModelDetail, paint: Paint, now: number): string[] {
  const lines = [`${paint.strong(printable(id))}  ${modelStatusText(status.status, paint)}`]
  if (status.reason) lines.push(storedSentence(status.reason))
  for (const engine of engines) {
    const age = lengthText(Math.max(0, now / 1_000 - engine.started_at))
    const where = engine.devices.length > 0 ? ` on ${placesText(engine)}` : ''
    lines.push(
      '',
      `${paint.name(engine.id)}  ${engine.state}${where}, ${sizeText(engine.memory_bytes)}, ${engine.busy} of ${engine.slots} slots busy, for ${age}${engine.pid === null ? '' : `, process ${engine.pid}`}`,
    )
    lines.push(`  runs ${printable(engine.placement.detail)}`)
    // An older server has none.
    if (engine.parking) lines.push(`  ${storedSentence(engine.parking)}`)
    lines.push(...longerContextLines(engine.placement).map(line => `  ${line}`))
    if (engine.command.length > 0) lines.push(paint.faint(`  ${printable(engine.command.map(shellWord).join(' '))}`))
  }
  if (status.benchmark) lines.push('', ...benchmarkLines(status.benchmark, now / 1_000))
  const entries = Object.entries(settings).filter(([name, value]) => name !== 'id' && !isEmpty(value))
  const width = Math.max(0, ...entries.map(([name]) => name.length))
  lines.push('', ...entries.map(([name, value]) => `${paint.faint(name.padEnd(width))}  ${valueText(name, value)}`))
  return lines
}

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || (typeof value === 'object' && Object.keys(value).length === 0)

/** Settings that are milliseconds in the API; here they are written as in infer.yaml. */
const times = new Set(['idle_ttl', 'dispatch_wait_ms', 'load_timeout', 'no_progress', 'stop_grace'])

function valueText(name: string, value: unknown): string {
  if (typeof value === 'number' && times.has(name)) return value % 1_000 === 0 ? `${value / 1_000}s` : `${value}ms`
  if (typeof value === 'number' && name === 'memory') return sizeText(value).replace(' ', '')
  return printable(typeof value === 'string' ? value : JSON.stringify(value))
}
