import { Failure } from '../../core/failure.ts'
import type { Call } from '../call.ts'
import { route } from '../route.ts'
import type { SubmitOwners } from '../slug/submit.ts'
import { falErrors } from './errors.ts'
import { targetHeader } from './proxy.ts'
import { FalOutput, falQueueRoutes } from './queue.ts'
import { falRunRoutes } from './run.ts'
import { falStorageRoutes } from './storage.ts'
import { falUploadRoutes } from './upload.ts'

/** What names one of fal's addresses was passed on before it was routed, so whatever comes here names none. */
function refuse(call: Call): never {
  const given = call.req.headers[targetHeader]
  throw new Failure(
    'invalid_value',
    given === undefined
      ? `'${targetHeader}' must name the address that is meant, as fal's clients do when their proxyUrl is this one.`
      : `'${targetHeader}' must be an https address of fal.run, queue.fal.run or rest.fal.ai. Nothing else is reached from here.`,
  )
}

const proxy = (method: 'GET' | 'POST' | 'PUT') =>
  route({
    method,
    path: '/fal/proxy',
    scope: 'public',
    bucket: 'api',
    tag: 'fal',
    summary: 'Call fal endpoint by proxy',
    description: `For the \`proxyUrl\` of fal's clients. The header \`${targetHeader}\` has an address of fal; the request is handled by the endpoint under \`/fal\` that stands for it, with its scope and limits. Nothing is fetched from other servers.`,
    errorCodes: ['invalid_value'],
    response: FalOutput,
    errors: falErrors,
    answer: refuse,
  })

/** fal's surface, another view of the same jobs: its clients work with `proxyUrl`, or with its hosts rewritten. */
export const falRoutes = (owners: SubmitOwners) => [
  ...falQueueRoutes(owners),
  ...falRunRoutes(owners),
  ...falUploadRoutes(owners),
  ...falStorageRoutes(owners),
  proxy('GET'),
  proxy('POST'),
  proxy('PUT'),
]
