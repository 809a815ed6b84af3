import { api, type Schema, useAnswer } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { durationText, sizeText } from '../../components/format.ts'
import { Facts, Notice, Queried, Section } from '../../components/page.tsx'
import { columnsOf, Table } from '../../components/table.tsx'
import { planText as text } from '../../text/plan.ts'

type Plan = Schema<'ModelPlan'>
type Evicted = Plan['evict'][number]
type Device = Plan['devices'][number]

const kinds = { ready: 'good', loading: 'active', load: 'active', wait: 'warning', refused: 'bad' } as const

const evictColumns = columnsOf<Evicted, keyof typeof text.evictColumns>(text.evictColumns, {
  model: ({ model_id }) => model_id ?? text.otherModel,
  memory: { number: true, show: ({ memory_bytes }) => sizeText(memory_bytes) },
  reload: { number: true, show: ({ reload_ms }) => durationText(reload_ms) },
  why: 'why',
})

/** An engine on a device, and what the plan does with it. */
function engineText({ model_id, evicted, kept_loaded }: Device['engines'][number]): string {
  const name = model_id ?? text.otherModel
  return evicted ? text.evicted(name) : kept_loaded ? text.kept(name) : name
}

const deviceColumns = columnsOf<Device, keyof typeof text.deviceColumns>(text.deviceColumns, {
  device: ({ id, fault, paused }) => (
    <>
      {id}
      {(fault ?? paused) !== null && <span className="text-warning block text-xs">{fault ?? paused}</span>}
    </>
  ),
  free: { number: true, show: ({ free_bytes, memory_bytes }) => `${sizeText(free_bytes)} / ${sizeText(memory_bytes)}` },
  needed: { number: true, show: ({ needed_bytes }) => (needed_bytes > 0 ? sizeText(needed_bytes) : '–') },
  engines: ({ engines }) => engines.map(engineText).join(', ') || '–',
})

/** What happens if a request for a model comes now, why, and from which figures. */
export function ModelPlanView({ id }: { id: string }) {
  const query = useAnswer(['models', 'plan', id], () => api.GET('/api/plan', { params: { query: { model: id } } }), {
    refetchInterval: 10_000,
  })
  return (
    <>
      <p className="text-muted mb-3">{text.about}</p>
      <Queried query={query} lines={8}>
        {plan => <Shown plan={plan} />}
      </Queried>
    </>
  )
}

function Shown({ plan }: { plan: Plan }) {
  const { status, detail, advice, eta_seconds: eta, evict, waits_for, devices, figures, placement, fallbacks } = plan
  const more = [plan.parking, plan.upcoming, plan.saved_detail, plan.affinity?.detail, plan.guessed_tokens?.detail]
  const sentences = more.filter(one => typeof one === 'string')
  return (
    <>
      <div className="border-line bg-surface mb-6 space-y-2 rounded-lg border p-4">
        <p className="flex flex-wrap items-center gap-2">
          <Badge kind={kinds[status]}>{text.statuses[status]}</Badge>
          <span>
            {detail} {eta !== null && eta > 0 && text.expected(durationText(eta * 1_000))}
          </span>
        </p>
        {advice !== null && <Notice kind="info">{advice}</Notice>}
      </div>
      {waits_for.length > 0 && (
        <Section title={text.waits}>
          <ul className="list-disc space-y-1 pl-5">
            {waits_for.map(({ engine_id, why }) => (
              <li key={engine_id ?? why}>{why}</li>
            ))}
          </ul>
        </Section>
      )}
      {evict.length > 0 && (
        <Section title={text.evict}>
          <Table label={text.evict} columns={evictColumns} rows={evict} rowKey="engine_id" />
        </Section>
      )}
      {devices.length > 0 && (
        <Section title={text.devices}>
          <Table label={text.devices} columns={deviceColumns} rows={devices} rowKey="id" />
        </Section>
      )}
      <Section title={text.figures}>
        <Facts
          className="border-line bg-surface divide-line divide-y rounded-lg border"
          rowClass="grid gap-x-4 px-3 py-1.5 md:grid-cols-[10rem_1fr]"
          rows={[
            [text.facts.memory, text.from(sizeText(figures.memory_bytes), text.sources[figures.memory_from])],
            [text.facts.loading, text.from(durationText(figures.load_ms), text.sources[figures.load_ms_from])],
            [text.facts.run, figures.run_ms !== null && durationText(figures.run_ms)],
            [text.facts.slots, figures.slots],
            [text.facts.bound, figures.order_bound],
            [text.facts.threads, plan.threads && `${plan.threads.count}: ${plan.threads.reason}`],
            [text.placement, placement?.detail],
            [text.facts.adapters, plan.adapters.map(({ model_id }) => model_id).join(', ')],
            [text.fallbacks, fallbacks.map(one => `${one.model_id}: ${one.detail}`).join(' ')],
            [text.more, sentences.join(' ')],
          ]}
        />
      </Section>
    </>
  )
}
