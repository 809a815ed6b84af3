import { z } from 'zod'
import { Failure, invalid } from '../../../core/failure.ts'
import { ModelBenchmark } from '../../../core/models/benchmark.ts'
import type { Model } from '../../../core/models/model.ts'
import type { ModelDownload, ModelProposal } from '../../../core/models/model-administration.ts'
import { sizeAdvice } from '../../../core/quantities.ts'
import {
  anyObject,
  array,
  boolean,
  flag,
  integer,
  namedObject,
  nullable,
  nullableInteger,
  nullableNumber,
  nullableString,
  number,
  object,
  oneOf,
  optional,
  optionalBoolean,
  optionalStringUpTo,
  strictObject,
  string,
} from '../../../core/schemas/fields.ts'
import { Task } from '../../../core/schemas/task.ts'
import { requireMachineOwner } from '../../http/access/reach.ts'
import { errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { type Route, routeOf } from '../../http/request/route.ts'
import { seconds } from '../../views/view-of.ts'
import { findModel } from './model-loading.ts'

const route = routeOf({ tag: 'Models' })
const bytes = z.int().nullable()

const Lines = object('The change of `infer.yaml`.', {
  added: array('Lines that are added.', z.string()),
  removed: array('Lines that are removed.', z.string()),
})

const CatalogModel = z.object({
  name: string('Short name, for `model` of `POST /api/models`.'),
  aliases: array('Further names for `model`, such as `starter`.', z.string()),
  title: string('Name for people.'),
  summary: string('What it is good for.'),
  kind: string('Kind of model, such as `chat` or `image`.'),
  license: string('Licence of the weights.'),
  tasks: array('Tasks that it does.', Task),
  parameters: nullableNumber('Number of parameters; null if unknown.'),
  context: nullableInteger('Most tokens that it was trained for; null for other kinds of models.'),
  engine: nullableString('Engine that would run it here; null if infer starts none for it.'),
  quantization: nullableString('Quantization that would be chosen here; null if there is no choice.'),
  fit: object('How it fits this machine.', {
    grade: string(
      'How it fits, best first: `gpu`, `setup` (on the GPUs after `infer engine setup gpu`), `split` (on the GPU in part or in turn), `processor`, `slow`, `missing` (its engine is not installed), `no`, `external` (infer cannot set it up by itself).',
    ),
    text: string('The same as words for people.'),
    memory: bytes.describe('Bytes of memory that it would take; null if unknown.'),
  }),
  configured: boolean('Whether a model with its name is in `infer.yaml`.'),
  benchmark: nullable(ModelBenchmark, 'The newest benchmark of that model; null before any.'),
})
const CatalogList = namedObject('ModelCatalog', 'Well-known open models, and how they fit this machine.', {
  models: array('The models, those that fit best first.', CatalogModel),
})

const Add = strictObject('ModelAdd', 'A model to download and to offer.', {
  model: z
    .string()
    .min(1)
    .max(256)
    .describe(
      'A name of the catalog, or `hf:owner/name` with `:file` after it if needed. With `adapter_of` a LoRA: its absolute path on the machine of the server, in a folder of models or in `sandbox_read` of the base; for vllm and sglang also `hf:owner/name`.',
    ),
  id: optional(z.string().min(1).max(128), 'Id under which it is offered. Default: proposed.'),
  tasks: optional(z.array(Task).max(16), 'Its tasks. Default: recognised by its files.'),
  context: optional(z.int().min(16), 'Most tokens of prompt and answer together.'),
  concurrency: optional(z.int().min(1).max(4096), 'Most requests at the same time.'),
  engine: optionalStringUpTo(64, 'Engine that runs it. Default: one that is installed.'),
  memory: optional(
    z.string().regex(/^\d+(\.\d+)? ?([KMGT]i?)?B$/, { error: ({ input }) => sizeAdvice(input) }),
    'Device memory to book instead of the estimate: `24GB`.',
  ),
  adapter_of: optionalStringUpTo(
    128,
    'Id of the base model of a LoRA adapter, which has all other settings but `id` of its base.',
  ),
  force: optionalBoolean('`true`: add it although it cannot run on this machine.'),
  dry_run: optionalBoolean('`true`: only answer what would be written.'),
})

const Proposal = namedObject('ModelProposal', 'What adding a model would write.', {
  model: anyObject('The entry of `infer.yaml`.'),
  memory: bytes.describe('Bytes of device memory; null if unknown.'),
  obstacle: nullableString('Why it cannot run here; null if it can.'),
  fits: boolean('Whether this machine has the memory and the GPU for it.'),
  advice: array('What else to install or to configure, as sentences.', z.string()),
  lines: Lines,
})

const Download = namedObject('ModelDownload', 'The download of a model.', {
  id: string('Id of the download: `download_…`.'),
  model: string('What was asked for.'),
  status: oneOf('State of the download.', ['running', 'completed', 'failed', 'cancelled']),
  file: nullableString('The file that is downloaded now, or was last; null before the first.'),
  bytes: number('Bytes of that file that are here.'),
  total_bytes: number('Bytes of that file.'),
  model_id: nullableString('Id under which the model is offered; null before.'),
  error: nullable(
    z.object({
      code: string('Error code, as in answers with an error.'),
      message: string('What happened, as a sentence.'),
    }),
    'Why it failed; null if it did not.',
  ),
  created_at: integer('Unix seconds.'),
  finished_at: nullableInteger('Unix seconds; null before the end.'),
})
const Downloads = namedObject('ModelDownloadList', 'Downloads of models since the start of the server.', {
  downloads: array('The downloads, newest first.', Download),
})

const Removed = namedObject('ModelRemoved', 'What removing a model changes.', {
  id: string('Id of the model.'),
  lines: Lines,
  deleted: array('Files and folders that were deleted.', z.string()),
})

const downloadView = ({ totalBytes, modelId, createdAt, finishedAt, ...rest }: ModelDownload) => ({
  ...rest,
  total_bytes: totalBytes,
  model_id: modelId,
  created_at: seconds(createdAt),
  finished_at: seconds(finishedAt),
})
const proposalView = ({ model, memory, obstacle, fits, advice, lines }: ModelProposal): z.input<typeof Proposal> => ({
  model,
  memory,
  obstacle,
  fits,
  advice,
  lines,
})

/** Settings of an engine, which an adapter has from its base. */
const ofTheBase = ['tasks', 'context', 'concurrency', 'engine', 'memory'] as const

const owner = (exchange: ClientExchange) => requireMachineOwner(exchange, 'Adding and removing models is')

const onlyOwner = 'Only for tokens of the organization that owns the machine.'

/** Routes that add models to this machine and remove them. */
export function modelAdministrationRoutes({
  fleet,
  models,
  registry,
}: Owners<'fleet' | 'models' | 'registry'>): Route[] {
  const benchmarkOf = (model: Model | undefined) => (model ? fleet.benchmark(model) : null)
  return [
    route('GET /api/model-catalog', 'admin:read', {
      summary: 'List catalog models',
      description: `Returns well-known open models and how each fits this machine, as \`infer model catalog\` does. ${onlyOwner}`,
      response: CatalogList,
      errorCodes: errorGroups.command,
      async handle(_, exchange) {
        owner(exchange)
        const configured = new Map(registry.all().map(model => [model.id, model]))
        return {
          models: (await models.catalog()).map(({ chosen, ...model }) => ({
            benchmark: benchmarkOf(configured.get(model.name)),
            name: model.name,
            aliases: [...model.aliases],
            title: model.title,
            summary: model.summary,
            kind: model.kind,
            license: model.license,
            tasks: [...model.tasks],
            parameters: model.parameters,
            context: model.context,
            engine: chosen.engine,
            quantization: chosen.quantization,
            fit: { grade: chosen.fit.grade, text: chosen.fit.text, memory: chosen.fit.memory },
            configured: configured.has(model.name),
          })),
        }
      },
    }),
    route('POST /api/models', 'admin:write', {
      bucket: 'api',
      summary: 'Add model',
      description: `Downloads a model and adds it to \`infer.yaml\`, as \`infer model add\` does. Answers at once; \`GET /api/model-downloads\` has the progress. With \`dry_run\` only answers what would be written. ${onlyOwner}`,
      status: 202,
      body: Add,
      example: { model: 'starter', dry_run: true },
      response: Download,
      otherAnswers: { 200: { description: 'With `dry_run`: what would be written.', response: Proposal } },
      errorCodes: [
        ...errorGroups.command,
        'conflict',
        'model_not_found',
        'unsupported_task',
        'disk_full',
        'no_capacity',
      ],
      async handle({ body: { model, dry_run, adapter_of: adapterOf, ...own } }, exchange) {
        owner(exchange)
        const foreign = ofTheBase.find(name => adapterOf !== undefined && own[name] !== undefined)
        if (foreign)
          throw invalid(foreign, `'${foreign}' is a setting of the base model: an adapter has none of its own.`)
        const settings = { ...own, adapterOf }
        if (dry_run)
          return new JsonText(JSON.stringify(proposalView(await models.propose(model, settings, exchange.signal))), 200)
        return downloadView(await models.add(model, settings))
      },
    }),
    route('GET /api/model-downloads', 'admin:read', {
      summary: 'List model downloads',
      description: `Returns downloads of models since the start of the server, 50 at most. ${onlyOwner}`,
      response: Downloads,
      errorCodes: ['organization_mismatch'],
      handle(_, exchange) {
        owner(exchange)
        return { downloads: models.downloads().map(downloadView) }
      },
    }),
    route('DELETE /api/model-downloads/:id', 'admin:write', {
      summary: 'Cancel model download',
      description: `Stops a download. What has arrived is kept, and adding the model again continues it. ${onlyOwner}`,
      params: z.object({ id: string('Id of the download: `download_…`.') }),
      response: Download,
      errorCodes: ['organization_mismatch', 'not_found'],
      handle({ params: { id } }, exchange) {
        owner(exchange)
        const cancelled = models.cancel(id)
        if (!cancelled) throw new Failure('not_found', `There is no download ${id.slice(0, 64)}.`)
        return downloadView(cancelled)
      },
    }),
    route('DELETE /api/models/**:id', 'admin:write', {
      summary: 'Remove model',
      description: `Removes a model from \`infer.yaml\`, as \`infer model remove\` does. The server finishes its requests and unloads it. ${onlyOwner}`,
      params: z.object({ id: string('Id of the model. It may contain `/`.') }),
      query: z.strictObject({
        dry_run: flag('`true`: only answer what would be removed.'),
        delete_files: flag('`true`: also delete its files, if infer downloaded them.'),
      }),
      response: Removed,
      errorCodes: [...errorGroups.command, 'conflict', 'model_not_found'],
      async handle({ params: { id }, query: { dry_run, delete_files } }, exchange) {
        findModel(id, exchange, { registry })
        const options = { dryRun: dry_run === 'true', deleteFiles: delete_files === 'true' }
        const { lines, deleted } = await models.remove(id, options)
        return { id, lines, deleted }
      },
    }),
  ]
}
