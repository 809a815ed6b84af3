import { api, type Schema, useAnswer } from '../api/client.ts'
import { budgetText as text } from '../text/budget.ts'
import { forecastOf } from './budget-forecast.ts'
import { costText } from './format.ts'
import { limitState, percentUsed } from './limit-use.ts'
import { Meter } from './meter.tsx'
import { Queried } from './page.tsx'
import { Time } from './time.tsx'

/** What an organization has spent in this month, for a session that may read it. */
export function OrganizationBudget({ organization }: { organization: string }) {
  const params = { path: { organization }, query: { bucket_width: 'month' as const } }
  const query = useAnswer(
    ['usage', 'budget', organization],
    // As CSV it would be a text.
    () => api.GET('/api/organizations/{organization}/usage', { params }) as Promise<{ data?: Schema<'UsageReport'> }>,
    { refetchInterval: 60_000 },
  )
  return (
    // As high as the grey lines.
    <div className="min-h-13">
      <Queried query={query} lines={2}>
        {({ spend_limit, currency }) => <Budget spend={spend_limit} currency={currency} />}
      </Queried>
    </div>
  )
}

/** What was spent in this month, of which limit, and what the month will come to. */
export function Budget({ spend, currency }: { spend: Schema<'Spend'>; currency: string }) {
  const { monthly_limit: limit, spent, held, period_end: end } = spend
  const forecast = forecastOf(spend, Date.now() / 1_000)
  const spentText = costText(spent, currency)
  return (
    <div className="space-y-1">
      {limit === null ? (
        <p className="flex justify-between gap-2 text-xs">
          <span>{text.spend}</span>
          <span className="text-muted tabular-nums">{text.unlimited(spentText)}</span>
        </p>
      ) : (
        <Meter
          label={text.spend}
          value={text.spent(spentText, costText(limit, currency), percentUsed(spent + held, limit))}
          parts={[
            { name: text.spend, amount: spent },
            { name: text.held(costText(held, currency)), amount: held },
          ]}
          whole={limit}
          state={limitState(spent + held, limit)}
        />
      )}
      <p className="text-muted flex flex-wrap justify-between gap-x-3 text-xs">
        <span>
          {[
            held > 0 && text.held(costText(held, currency)),
            forecast && text.forecast(costText(forecast.total, currency)),
          ]
            .filter(Boolean)
            .join(' · ')}
        </span>
        <span>
          {text.resets} <Time at={end} />
        </span>
      </p>
      {limit !== null && spent + held >= limit ? (
        <p className="text-bad text-xs">{text.reached}</p>
      ) : (
        forecast?.reachedAt != null && (
          <p className="text-warning text-xs">
            {text.reachedAt} <Time at={forecast.reachedAt} />
          </p>
        )
      )}
    </div>
  )
}
