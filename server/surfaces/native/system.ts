import { isCrossSite, sendText } from '../../http/answer/own-page.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'

const route = routeOf({ tag: 'System' })

/** The routes for health and metrics. */
export const systemRoutes = ({ metrics }: Pick<Owners, 'metrics'>) => [
  route('GET /livez', 'public', {
    aliases: ['/healthz'],
    summary: 'Check liveness',
    description: 'Answers 200 as long as the process runs, also while it starts or stops. For liveness probes.',
    media: ['text/plain'],
    answer: call => sendText(call, 200, isCrossSite(call) ? '' : 'ok\n'),
  }),
  route('GET /readyz', 'public', {
    summary: 'Check readiness',
    description: 'Answers 200 if requests are accepted, and 503 while the server starts or stops. For load balancers.',
    media: ['text/plain'],
    answer: call => sendText(call, 200, isCrossSite(call) ? '' : 'ready\n'),
  }),
  route('GET /metrics', 'loopback', {
    summary: 'Get metrics',
    description:
      'Metrics in the text format of Prometheus. Direct connections from this machine need no token, unless `metrics: token` is set in `infer.yaml`. All others, a proxy on this machine included (`Forwarded`, `X-Forwarded-*`, `X-Real-IP` or `Via`), need the scope `admin:read`.',
    media: ['text/plain'],
    answer: async call => call.send(200, await metrics.text(), metrics.contentType),
  }),
]
