import { useQuery } from '@tanstack/react-query'
import { api, dataOf, type Schema } from '../../api/client.ts'
import { costText, countText, sizeText } from '../../components/format.ts'
import { Meter } from '../../components/meter.tsx'
import { Queried, Section } from '../../components/page.tsx'
import { Time } from '../../components/time.tsx'
import { usageText } from '../../text/usage.ts'

const text = usageText.limits

type LimitUse = Schema<'LimitUse'>
type Spend = Schema<'Spend'>

const amount = (limit: LimitUse, value: number): string =>
  limit.name === 'stored_bytes' ? sizeText(value) : countText(value)

/** Every limit that applies to the session, what is left of it, and what was spent this month. */
export function LimitsLeft() {
  const query = useQuery({
    queryKey: ['usage', 'me'],
    queryFn: () => dataOf(api.GET('/api/me')),
    refetchInterval: 15_000,
  })
  return (
    <Section title={text.title}>
      <Queried query={query}>
        {({ limits, spend }) => (
          <div className="grid gap-4 md:grid-cols-2">
            {(['organization', 'token'] as const).map(of => (
              <div key={of} className="bg-surface border-line space-y-3 rounded-lg border p-4">
                <h3 className="font-medium">{text[of]}</h3>
                <SpendLeft spend={spend[of]} currency={spend.currency} />
                {limits
                  .filter(limit => limit.limit_of === of)
                  .map(limit => (
                    <Meter
                      key={limit.name}
                      label={text.names[limit.name]}
                      value={text.left(amount(limit, limit.remaining), amount(limit, limit.limit))}
                      parts={[{ name: text.names[limit.name], amount: limit.limit - limit.remaining }]}
                      whole={limit.limit}
                    />
                  ))}
              </div>
            ))}
          </div>
        )}
      </Queried>
    </Section>
  )
}

function SpendLeft({ spend, currency }: { spend: Spend; currency: string }) {
  const spent = costText(spend.spent, currency)
  const limit = spend.monthly_limit
  return (
    <div className="space-y-1">
      {limit === null ? (
        <p className="flex justify-between gap-2 text-xs">
          <span>{text.spend}</span>
          <span className="text-muted tabular-nums">{text.unlimited(spent)}</span>
        </p>
      ) : (
        <Meter
          label={text.spend}
          value={text.spent(spent, costText(limit, currency))}
          parts={[
            { name: text.spend, amount: spend.spent },
            { name: text.held(costText(spend.held, currency)), amount: spend.held },
          ]}
          whole={limit}
        />
      )}
      <p className="text-muted flex flex-wrap justify-between gap-x-3 text-xs">
        <span>{spend.held > 0 && text.held(costText(spend.held, currency))}</span>
        <span>
          {text.resets} <Time at={spend.period_end} />
        </span>
      </p>
    </div>
  )
}
