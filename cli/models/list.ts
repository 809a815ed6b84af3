import { join } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { dataDirectory, remoteServer } from '../../core/config.ts'
import { readConfig } from '../../core/models/config.ts'
import { defaultModels } from '../../core/models/defaults.ts'
import { hasPrice } from '../../core/models/price.ts'
import { openRegistry } from '../../core/models/registry.ts'
import { moneyText } from '../../core/money-text.ts'
import { type Api, openClient } from '../client/client.ts'
import { runningServer } from '../client/find-server.ts'
import { storedSentence } from '../client/refusal.ts'
import { commandName, withCommon, withExamples } from '../terminal/options.ts'
import { type Paint, printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type ModelStatus, type ModelStatusList, modelStatusOf } from './status.ts'

/** `infer model list`: lists the server's models with their status; without a server, the configured models. */
export function define(command: Command, terminal: Terminal): void {
  const list = withCommon(command)
    .summary('list the models and their status')
    .description('Lists the models and their status. When no server runs, lists the configured models.')
    .option('--prices', 'show what the use of each model costs')
    .option('--config <path>', 'the configuration to read when no server runs')
    .action(async ({ dataDir, config, json, prices }) => {
      const folder = dataDirectory(dataDir)
      const live = remoteServer() !== undefined || runningServer(folder) !== undefined
      const answer: ModelStatusList = live
        ? await modelStatusOf(openClient(folder))
        : { models: await configured(config, folder) }
      if (json) terminal.json(answer)
      else if (answer.models.length === 0) terminal.remark('No model is offered. Add one with: infer model add')
      else if (prices) showPrices(answer.models, terminal)
      else {
        // Most servers have no regions.
        const hasRegions = answer.models.some(({ region }) => region != null)
        terminal.table(
          ['model', 'status', 'engine', ...(hasRegions ? ['region'] : []), 'waiting', 'tasks', 'note'],
          answer.models.map(model => rowOf(model, hasRegions, terminal)),
          { optional: ['tasks', 'waiting', 'engine'] },
        )
        if (!live) terminal.remark('No server is running; this is the configuration. Start it with: infer serve')
      }
      const { fault, restart_for } = answer.configuration ?? { fault: null, restart_for: [] }
      if (json) return
      if (fault !== null)
        terminal.warn(
          `The server keeps its previous configuration, because the new one is invalid: ${printable(fault)}`,
        )
      if (restart_for.length > 0)
        terminal.remark(`Changes that take effect at the next start of the server: ${restart_for.join(', ')}`)
    })
  withExamples(list, [
    [commandName(command), 'as a table'],
    [`${commandName(command)} --prices`, 'what the use of each model costs'],
    [`${commandName(command)} --json`, 'the response of the API'],
  ])
}

async function configured(path: string | undefined, dataDir: string): Promise<ModelStatus[]> {
  const { traitsOf } = await import('../../gpu/presets/presets.ts')
  const config = readConfig(path ?? join(dataDir, 'infer.yaml'), path !== undefined, traitsOf)
  const registry = openRegistry({ ...config, defaults: defaultModels, traits: traitsOf })
  const listed = [...registry.names()].flatMap(one => (one.kind === 'alias' ? [] : [one.listed]))
  return listed.map(
    ({ id, modelId, kind, adapterId, aliases = [], enabled, tasks, engine, slug, context_length, price }) => ({
      model_id: id,
      profile_of: kind === 'profile' ? (adapterId ?? modelId) : null,
      adapter_of: kind === 'adapter' ? modelId : null,
      aliases: kind === 'profile' ? [] : aliases,
      enabled,
      tasks,
      engine,
      slug: slug ?? null,
      context_length: context_length ?? null,
      region: registry.catalog().get(id)?.region ?? null,
      // What is not priced is left out.
      price: hasPrice(price) ? ({ currency: config.currency, ...price } as Api['ModelPrice']) : null,
      status: enabled ? 'configured' : 'disabled',
    }),
  )
}

/** Maximum characters of the tasks in a terminal, without the number of further ones. */
const maxTasksText = 30

/** Returns one row of the table. */
function rowOf(model: ModelStatus, hasRegions: boolean, { paint, isTerminal }: Terminal): string[] {
  const eta = model.eta_seconds ? `ready in about ${model.eta_seconds} s` : ''
  return [
    printable(model.model_id),
    modelStatusText(model.status, paint),
    model.engine ?? '-',
    ...(hasRegions ? [model.region ?? '-'] : []),
    model.queue_depth === undefined ? '-' : String(model.queue_depth),
    isTerminal ? tasksText(model.tasks) : model.tasks.join(' '),
    storedSentence(model.reason ?? (eta || namesText(model))),
  ]
}

/** Returns what else is known of the name of a model, and of its other names. */
function namesText({ profile_of, adapter_of, aliases = [] }: ModelStatus): string {
  if (profile_of != null) return `profile of ${profile_of}`
  const of = adapter_of == null ? [] : [`adapter of ${adapter_of}`]
  return [...of, ...(aliases.length > 0 ? [`also ${aliases.join(', ')}`] : [])].join(', ')
}

/** Returns the first tasks of a model without their prefixes, and how many more it has: `text-to-image +10`. */
function tasksText(tasks: readonly string[]): string {
  const names = tasks.map(task => task.replace(/^\w+\//, ''))
  const shown = names.filter((_, at) => at === 0 || names.slice(0, at + 1).join(' ').length <= maxTasksText)
  return [...shown, ...(shown.length < names.length ? [`+${names.length - shown.length}`] : [])].join(' ')
}

/** Colors the status of a model by its meaning. */
export function modelStatusText(status: string, paint: Paint): string {
  const colours: Record<string, (text: string) => string> = {
    warm: paint.good,
    loading: paint.warning,
    unavailable: paint.bad,
  }
  return (colours[status] ?? paint.faint)(status)
}

/** What each price is for, in the order of the table. */
const units: readonly (readonly [key: keyof Api['ModelPrice'], unit: string])[] = [
  ['input_per_million_tokens', 'a million input tokens'],
  ['cached_input_per_million_tokens', 'a million cached input tokens'],
  ['output_per_million_tokens', 'a million output tokens'],
  ['per_image', 'an image'],
  ['per_video_second', 'a second of video'],
  ['per_audio_second', 'a second of audio'],
  ['per_thousand_characters', 'a thousand characters'],
  ['per_thousand_documents', 'a thousand documents'],
  ['per_gpu_second', 'a GPU second'],
]

/** Returns the lines of one model: the model, an amount, and what it is for. */
function priceRows({ model_id, price }: Pick<ModelStatus, 'model_id' | 'price'>): string[][] {
  if (!price) return [[printable(model_id), '0', 'everything']]
  const amount = (value: number) => `${moneyText(value)} ${price.currency}`
  const single = units.flatMap(([key, unit]) => {
    const value = price[key]
    return typeof value === 'number' && value > 0 ? [[amount(value), unit]] : []
  })
  const images = (price.image_prices ?? []).map(({ price: each, size, quality }) => [
    amount(each),
    ['an image', size, quality && `of ${quality} quality`].filter(Boolean).join(' '),
  ])
  return [...single, ...images].map(columns => [printable(model_id), ...columns.map(printable)])
}

/** Prints what the use of each model costs. */
const showPrices = (models: readonly ModelStatus[], terminal: Terminal): void =>
  terminal.table(['model', 'price', 'for'], models.flatMap(priceRows))
