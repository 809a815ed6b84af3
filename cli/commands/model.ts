import { join } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import { dataDirectory, readConfig, remote } from '../../core/config.ts'
import { defaultModels } from '../../core/models/defaults.ts'
import { openClient } from '../client.ts'
import { withDataDir, withExamples, withJson } from '../options.ts'
import { type Paint, printable } from '../paint.ts'
import { runningServer } from '../server-file.ts'
import type { Terminal } from '../terminal.ts'

const ModelStatus = z.looseObject({
  model_id: z.string(),
  status: z.string(),
  tasks: z.array(z.string()),
  engine: z.string().optional(),
  reason: z.string().nullish(),
  queue_depth: z.number().optional(),
  eta_seconds: z.number().nullish(),
  workers: z.object({ ready: z.number(), loading: z.number() }).optional(),
})
type ModelStatus = z.output<typeof ModelStatus>
const Answer = z.looseObject({ models: z.array(ModelStatus) })

/** `infer model list`: what the server offers and how each is doing; without a server, what the configuration says. */
export function define(command: Command, terminal: Terminal): void {
  const list = withDataDir(withJson(command.command('list')))
    .summary('list the models and how each is doing')
    .description('Lists the models and how each is doing. When no server runs, lists what is configured.')
    .option('--config <path>', 'the configuration to read when no server runs')
    .action(async ({ dataDir, config, json }: { dataDir?: string; config?: string; json?: boolean }) => {
      const folder = dataDirectory(dataDir)
      const live = remote() !== undefined || runningServer(folder) !== undefined
      const models = live
        ? (await openClient(folder).ask({ method: 'GET', path: '/api/model-status', answer: Answer })).models
        : configured(config, folder)
      if (json) terminal.json({ models })
      else if (models.length === 0) terminal.remark('No model is offered. Add one under "models" in infer.yaml.')
      else {
        terminal.table(
          ['model', 'status', 'engine', 'waiting', 'tasks', 'note'],
          models.map(model => rowOf(model, terminal.paint)),
        )
        if (!live) terminal.remark('No server is running; this is the configuration. Start it with: infer serve')
      }
    })
  withExamples(list, [
    ['infer model list', 'as a table'],
    ['infer model list --json', 'as the API gives it'],
  ])
  withExamples(command, [['infer model list', 'what is offered, what is warm']])
}

function configured(path: string | undefined, dataDir: string): ModelStatus[] {
  const { models } = readConfig(path ?? join(dataDir, 'infer.yaml'), path !== undefined)
  return (models.length > 0 ? models : defaultModels()).map(({ id, enabled, tasks, engine, slug, context_length }) => ({
    model_id: id,
    enabled,
    tasks,
    engine,
    slug: slug ?? null,
    context_length: context_length ?? null,
    status: enabled ? 'configured' : 'disabled',
  }))
}

/** One line of the table. */
export function rowOf(model: ModelStatus, paint: Paint): string[] {
  const colour =
    model.status === 'warm'
      ? paint.good
      : model.status === 'unavailable'
        ? paint.bad
        : model.status === 'loading'
          ? paint.warning
          : paint.faint
  const eta = model.eta_seconds ? `ready in about ${model.eta_seconds} s` : ''
  return [
    printable(model.model_id),
    colour(model.status),
    model.engine ?? '-',
    model.queue_depth === undefined ? '-' : String(model.queue_depth),
    model.tasks.join(' '),
    printable(model.reason ?? eta),
  ]
}
