import { Failure } from '../../../core/failure.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { SubmitOwners } from '../../work/submit-generation.ts'
import { targetHeader } from './addresses.ts'
import { falRoute } from './errors.ts'
import { FalOutput, falQueueRoutes, falRunRoutes } from './queue.ts'
import { falStorageRoutes, falUploadRoutes } from './storage.ts'

/** Refuses a proxied request without a valid target. Requests with a valid one were rewritten before routing. */
function refuse(exchange: ClientExchange): never {
  const target = exchange.req.headers[targetHeader]
  throw new Failure(
    'invalid_value',
    target === undefined
      ? `'${targetHeader}' must be the target URL, as fal's clients send it if this URL is their proxyUrl.`
      : `'${targetHeader}' must be an https URL of fal.run, queue.fal.run or rest.fal.ai. No other hosts are supported.`,
  )
}

const proxy = (method: 'GET' | 'POST' | 'PUT') =>
  falRoute(`${method} /fal/proxy`, 'public', {
    bucket: 'api',
    summary: 'Call fal endpoint by proxy',
    description: `For the \`proxyUrl\` of fal's clients. The header \`${targetHeader}\` has an address of fal; the request is handled by the endpoint under \`/fal\` that stands for it, with its scope and limits. Nothing is fetched from other servers.`,
    errorCodes: ['invalid_value'],
    response: FalOutput,
    answer: refuse,
  })

/** The routes of the fal-compatible API. fal's clients use them with `proxyUrl`, or with rewritten hosts. */
export const falRoutes = (owners: SubmitOwners) => [
  ...falQueueRoutes(owners),
  ...falRunRoutes(owners),
  ...falUploadRoutes(owners),
  ...falStorageRoutes(owners),
  proxy('GET'),
  proxy('POST'),
  proxy('PUT'),
]
