import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import type { ModelPullEvent } from '../../../core/models/model-administration.ts'
import { failureOfIssues } from '../../../core/schemas/issues.ts'
import { requireMachineOwner } from '../../http/access/machine-owner.ts'
import { readJson } from '../../http/body/json-body.ts'
import type { Call } from '../../http/request/call.ts'
import type { Owners } from '../../http/request/owners.ts'
import { route } from '../../http/request/route.ts'
import { ollamaErrors, ollamaRoute } from './ollama-route.ts'

export type OllamaPullOwners = Pick<Owners, 'admission' | 'config' | 'cpu' | 'log' | 'modelPull'>

const Pull = z
  .object({
    model: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .describe('A short name of `infer model catalog`, or `hf.co/owner/name`.'),
    name: z.string().min(1).max(256).optional().describe('The same as `model`, of older clients.'),
    stream: z.boolean().nullish().describe('Whether to report the progress as lines of JSON. Default: true.'),
  })
  .meta({ id: 'OllamaPullRequest', description: 'A model to download.' })
const Status = z
  .object({
    status: z.string().describe('What happens; `success` in the last line.'),
    digest: z.string().optional().describe('Name of the file that is downloaded.'),
    total: z.int().optional().describe('Bytes of the file.'),
    completed: z.int().optional().describe('How many of them are here.'),
  })
  .meta({ id: 'OllamaPullStatus', description: 'Progress of a download.' })

const statusOf = (event: ModelPullEvent): z.input<typeof Status> =>
  'status' in event
    ? { status: event.status }
    : { status: `pulling ${event.file}`, digest: event.file, total: event.total, completed: event.bytes }

async function pull(call: Call, owners: OllamaPullOwners): Promise<void> {
  requireMachineOwner(call, 'Downloading of models is')
  const body = await readJson(call, owners)
  const read = Pull.safeParse(body)
  if (!read.success) throw failureOfIssues(read.error, body)
  const { model, name = model, stream } = read.data
  if (name === undefined)
    throw new Failure('missing_required_parameter', "'model' is required: the name of a model.", { param: 'model' })
  const { res } = call
  const line = (status: z.input<typeof Status>) => `${JSON.stringify(status)}\n`
  if (stream === false) {
    await owners.modelPull(name, { signal: call.signal, onEvent: () => {} })
    return call.send(200, JSON.stringify({ status: 'success' }))
  }
  let begun = false
  const write = (text: string) => {
    if (!begun) call.head(200, 'application/x-ndjson', ['cache-control', 'no-cache', 'x-accel-buffering', 'no'])
    begun = true
    // A client that does not read loses progress, and never the end.
    if (!res.destroyed && !res.writableNeedDrain) res.write(text)
  }
  try {
    await owners.modelPull(name, { signal: call.signal, onEvent: event => write(line(statusOf(event))) })
    write('')
    res.end(line({ status: 'success' }))
  } catch (thrown) {
    if (!begun) throw thrown
    const failure = Failure.from(thrown)
    if (failure.code === 'internal_error') owners.log.error('A pull failed', { request: call.id }, failure.cause)
    res.end(`${JSON.stringify(ollamaErrors(failure, call).body)}\n`)
  }
}

/** The route that downloads models. */
export const ollamaPullRoutes = (owners: OllamaPullOwners) => [
  route({
    ...ollamaRoute,
    method: 'POST',
    path: '/ollama/api/pull',
    scope: 'admin:write',
    bucket: 'api',
    summary: 'Download model',
    description:
      'Downloads a model and adds it to `infer.yaml`, as `infer model add` does: a short name of the catalog, or a repository of the hub as `hf.co/owner/name`, with `:` and a quantization after it. The answer is lines of JSON with the progress. A client that disconnects stops the download; what has arrived is kept. Only for tokens of the organization that owns the machine.',
    errorCodes: [
      'organization_mismatch',
      'model_not_found',
      'model_not_allowed',
      'conflict',
      'no_capacity',
      'worker_error',
      'disk_full',
      'timeout',
      'cancelled',
    ],
    media: ['application/x-ndjson'],
    body: Pull,
    example: { model: 'starter', stream: false },
    response: Status,
    answer: call => pull(call, owners),
  }),
]
