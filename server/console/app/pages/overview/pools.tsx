import { type Schema, useSession } from '../../api/client.ts'
import { modelHref } from '../../components/addresses.ts'
import { TextLink } from '../../components/button.tsx'
import { costText, decimalText, sentenceText } from '../../components/format.ts'
import { Meter } from '../../components/meter.tsx'
import { EngineStateView } from '../../components/model.tsx'
import { Notice } from '../../components/page.tsx'
import { type Column, columnsOf, Table } from '../../components/table.tsx'
import { modelText } from '../../text/models.ts'
import { overviewText } from '../../text/overview.ts'

type Pool = Schema<'PoolStatus'>
type Engine = Schema<'EngineStatus'>

/** An engine in a pool, and why it waits for a machine. */
interface PoolEngine extends Engine {
  waitsFor: string | null
}

const columns: readonly Column<PoolEngine>[] = columnsOf(overviewText.poolColumns, {
  model: ({ model_id: id }) => <TextLink href={modelHref(id)} className="break-words" label={id} />,
  pool: ({ pool }) => pool ?? '–',
  machine: machineOf,
  state: ({ state, waitsFor }) => (
    <>
      <EngineStateView state={state} />
      {waitsFor !== null && <span className="text-muted block max-w-md text-xs">{waitsFor}</span>}
    </>
  ),
  slots: ({ busy, slots }) => modelText.busy(busy, slots),
})

/** The pools with what engines of this server use of them, and these engines. A cluster chooses their cards itself. */
export function Pools({
  pools,
  engines,
  models,
}: {
  pools: readonly Pool[]
  engines: readonly Engine[]
  models: readonly Schema<'ModelLoad'>[]
}) {
  const { session } = useSession()
  const waiting = new Map(models.map(model => [model.model_id, model.waiting_for?.detail ?? null]))
  const rows = engines.flatMap(engine =>
    engine.pool === null
      ? []
      : [{ ...engine, waitsFor: engine.state === 'starting' ? (waiting.get(engine.model_id) ?? null) : null }],
  )
  return (
    <>
      <ul className="mb-3 grid gap-3 lg:grid-cols-2">
        {pools.map(pool => (
          <li key={pool.name} className="border-line bg-surface min-w-0 rounded-lg border p-3">
            <div className="flex flex-wrap justify-between gap-x-3">
              <h3 className="font-medium">{pool.name}</h3>
              <p className="text-muted">{overviewText.poolKinds[pool.kind]}</p>
            </div>
            <p className="text-muted tabular-nums">{factsOf(pool).join(' · ')}</p>
            <PoolLimits pool={pool} currency={session.currency} />
            {pool.unknown !== null && (
              <p className="text-warning mt-1 text-xs">{overviewText.poolUnknown(pool.unknown)}</p>
            )}
          </li>
        ))}
      </ul>
      {rows.length > 0 && <Table label={overviewText.poolEngines} columns={columns} rows={rows} rowKey="id" />}
    </>
  )
}

/** What of the limits of the month is used; of a pool without them what was used, if anything. */
function PoolLimits({ pool, currency }: { pool: Pool; currency: string }) {
  const {
    used_card_hours: hours,
    used_cost: cost,
    monthly_card_hours_limit: mostHours,
    monthly_cost_limit: most,
  } = pool
  const hoursText = overviewText.poolHours(decimalText(hours))
  const used = [mostHours === null && hours > 0 && hoursText, most === null && cost > 0 && costText(cost, currency)]
  return (
    <div className="mt-2 space-y-2 empty:hidden">
      {mostHours !== null && (
        <Meter
          label={overviewText.poolMonth.hours}
          value={overviewText.poolOf(decimalText(hours), decimalText(mostHours))}
          parts={[{ name: overviewText.poolMonth.hours, amount: hours }]}
          whole={mostHours}
        />
      )}
      {most !== null && (
        <Meter
          label={overviewText.poolMonth.cost}
          value={overviewText.poolOf(costText(cost, ''), costText(most, currency))}
          parts={[{ name: overviewText.poolMonth.cost, amount: cost }]}
          whole={most}
        />
      )}
      {used.some(Boolean) && (
        <p className="text-muted text-xs tabular-nums">{overviewText.poolUsed(used.filter(Boolean).join(' · '))}</p>
      )}
      {pool.limit_reached !== null && <Notice kind="warning">{sentenceText(pool.limit_reached)}</Notice>}
    </div>
  )
}

const factsOf = ({ cards, used_cards, engines, max_cards, max_engines, cost_per_hour }: Pool): string[] => [
  overviewText.poolUse(used_cards, cards, engines),
  ...(max_cards === null ? [] : [overviewText.atMostCards(max_cards)]),
  ...(max_engines === null ? [] : [overviewText.atMostEngines(max_engines)]),
  ...(cost_per_hour === null ? [] : [overviewText.cardCost(cost_per_hour)]),
]

/** `lab/node1/gpu0` is on `node1`, `box/gpu0` on the one machine of its pool. An engine that waits has none yet. */
function machineOf({ pool, devices, state, waitsFor }: PoolEngine): string {
  if (state === 'starting' && waitsFor !== null) return '–'
  const nodes = new Set(devices.map(id => id.split('/').slice(1, -1).join('/')))
  return [...nodes].map(node => node || (pool ?? '')).join(', ') || '–'
}
