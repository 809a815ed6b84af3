import { z } from 'zod'
import { Failure, invalid } from '../../../core/failure.ts'
import type { ModelPullEvent } from '../../../core/models/model-administration.ts'
import {
  namedObject,
  nullishBoolean,
  optional,
  optionalInteger,
  optionalString,
  string,
} from '../../../core/schemas/fields.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import { requireMachineOwner } from '../../http/access/reach.ts'
import { readJson } from '../../http/body/body.ts'
import { errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { type OllamaChatOwners, ollamaChatRoutes } from './generate.ts'
import { ollamaModelRoutes } from './models.ts'
import { ollamaErrors, ollamaRoute } from './ollama-route.ts'

type OllamaPullOwners = Owners<'admission' | 'config' | 'cpu' | 'log' | 'modelPull'>

const Pull = namedObject('OllamaPullRequest', 'A model to download.', {
  model: optional(z.string().min(1).max(256), 'A short name of `infer model catalog`, or `hf.co/owner/name`.'),
  name: optional(z.string().min(1).max(256), 'The same as `model`, of older clients.'),
  stream: nullishBoolean('Whether to report the progress as lines of JSON. Default: true.'),
})
const Status = namedObject('OllamaPullStatus', 'Progress of a download.', {
  status: string('What happens; `success` in the last line.'),
  digest: optionalString('Name of the file that is downloaded.'),
  total: optionalInteger('Bytes of the file.'),
  completed: optionalInteger('How many of them are here.'),
})

const statusOf = (event: ModelPullEvent): z.input<typeof Status> =>
  'status' in event
    ? { status: event.status }
    : { status: `pulling ${event.file}`, digest: event.file, total: event.total, completed: event.bytes }

async function pull(exchange: ClientExchange, owners: OllamaPullOwners) {
  requireMachineOwner(exchange, 'Downloading of models is')
  const { model, name = model, stream } = parsed(Pull, await readJson(exchange, owners))
  if (name === undefined)
    throw invalid('model', "'model' is required: the name of a model.", 'missing_required_parameter')
  const { res } = exchange
  const line = (status: z.input<typeof Status>) => `${JSON.stringify(status)}\n`
  if (stream === false) {
    await owners.modelPull(name, { signal: exchange.signal, onEvent: () => {} })
    return exchange.send(200, JSON.stringify({ status: 'success' }))
  }
  let begun = false
  const write = (text: string) => {
    if (!begun) exchange.head(200, 'application/x-ndjson', ['cache-control', 'no-cache', 'x-accel-buffering', 'no'])
    begun = true
    // A client that does not read loses progress, and never the end.
    if (!res.destroyed && !res.writableNeedDrain) res.write(text)
  }
  try {
    await owners.modelPull(name, { signal: exchange.signal, onEvent: event => write(line(statusOf(event))) })
    write('')
    res.end(line({ status: 'success' }))
  } catch (thrown) {
    if (!begun) throw thrown
    const failure = Failure.from(thrown)
    if (failure.code === 'internal_error') owners.log.error('A pull failed', { request: exchange.id }, failure.cause)
    res.end(`${JSON.stringify(ollamaErrors(failure, exchange).body)}\n`)
  }
}

/** The route that downloads models. */
const ollamaPullRoutes = (owners: OllamaPullOwners) => [
  ollamaRoute('POST /ollama/api/pull', 'admin:write', {
    bucket: 'api',
    summary: 'Download model',
    description:
      'Downloads a model and adds it to `infer.yaml`, as `infer model add` does: a short name of the catalog, or a repository of the hub as `hf.co/owner/name`, with `:` and a quantization after it. The answer is lines of JSON with the progress. A client that disconnects stops the download; what has arrived is kept. Only for tokens of the organization that owns the machine.',
    errorCodes: [
      ...errorGroups.command,
      'model_not_found',
      'model_not_allowed',
      'conflict',
      'no_capacity',
      'disk_full',
      'cancelled',
    ],
    media: ['application/x-ndjson'],
    body: Pull,
    example: { model: 'starter', stream: false },
    response: Status,
    answer: exchange => pull(exchange, owners),
  }),
]

/** The version of Ollama whose API these routes follow. Clients compare it with the one that they need. */
const followed = '0.12.0'

const Version = namedObject('OllamaVersion', 'A version.', {
  version: string('The version of Ollama whose API this follows.'),
})
const Refused = namedObject('OllamaRefused', 'There is no such answer.', {})

/** Why a request that manages models is refused, by its path. */
const refused = {
  push: ['POST', 'Models of this server are not published.'],
  create: ['POST', 'Models are configured in infer.yaml. Add one with: infer model add'],
  copy: ['POST', 'Models are configured in infer.yaml. Offer one under a second id with: infer model add --id'],
  delete: ['DELETE', 'Models are configured in infer.yaml. Remove one with: infer model remove'],
} as const

const refusal = (what: string, method: 'POST' | 'DELETE', hint: string) =>
  ollamaRoute(`${method} /ollama/api/${what}`, 'admin:write', {
    bucket: 'api',
    summary: `${method === 'DELETE' ? 'Delete' : what === 'push' ? 'Upload' : what === 'copy' ? 'Duplicate' : 'Create'} model`,
    description: `Always refused. ${hint}.`.replace(/\.\.$/, '.'),
    errorCodes: ['unsupported_parameter'],
    response: Refused,
    handle: () => {
      throw new Failure('unsupported_parameter', `/ollama/api/${what} is not supported here. ${hint}`)
    },
  })

const alive = 'Ollama is running'

export const ollamaRoutes = (owners: OllamaChatOwners & OllamaPullOwners) => [
  ...ollamaChatRoutes(owners),
  ...ollamaModelRoutes(owners),
  ...ollamaPullRoutes(owners),
  ...Object.entries(refused).map(([what, [method, hint]]) => refusal(what, method, hint)),
  ollamaRoute('GET /ollama', 'public', {
    summary: 'Check liveness',
    description: `Answers \`${alive}\`, by which Ollama's clients find out whether there is a server.`,
    media: ['text/plain'],
    answer: exchange => exchange.send(200, alive, 'text/plain; charset=utf-8', ['cache-control', 'no-store']),
  }),
  ollamaRoute('GET /ollama/api/version', 'public', {
    summary: 'Get version',
    description: 'Returns the version of Ollama whose API this follows, not the version of infer.',
    response: Version,
    handle: () => ({ version: followed }),
  }),
]
