import type { Counter, Gauge } from 'prom-client'
import type { Webhooks } from '../../core/webhooks/webhooks.ts'

/** Adds the metrics of webhooks; `gauge` and `total` register a metric that is read at each scrape. */
export function webhookMetrics(
  webhooks: Pick<Webhooks, 'counts' | 'totals'>,
  {
    gauge,
    total,
  }: {
    gauge: (name: string, help: string, labels: string[], collect: (set: Gauge) => Promise<void>) => unknown
    total: (name: string, help: string, labels: string[], collect: (set: Counter) => void) => unknown
  },
): void {
  total('infer_webhook_attempts_total', 'Attempts to deliver a webhook, by outcome.', ['outcome'], set => {
    for (const [outcome, count] of Object.entries(webhooks.totals())) set.inc({ outcome }, count)
  })
  gauge(
    'infer_webhook_deliveries',
    'Kept webhook deliveries, pending and dead, 10,000 at most.',
    ['state'],
    async set => {
      for (const [state, count] of Object.entries(await webhooks.counts())) set.set({ state }, count)
    },
  )
}
