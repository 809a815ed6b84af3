import { type ReactNode, useState } from 'react'
import { useLocation, useSearchParams } from 'wouter'
import { ApiFailure, api, at, type Schema, useAnswer, useModels, useSession } from '../../api/client.ts'
import { modelHref } from '../../components/addresses.ts'
import { Badge } from '../../components/badge.tsx'
import { Benchmark } from '../../components/benchmark.tsx'
import { Button, TextLink } from '../../components/button.tsx'
import { CodeBlock } from '../../components/code.tsx'
import { countText, durationText, knownDuration, sizeText } from '../../components/format.ts'
import { LogView } from '../../components/log/log-view.tsx'
import { EngineStateView, ModelActions, ModelStateView } from '../../components/model.tsx'
import { BackLink, Empty, Facts, Failed, PageHeading, Queried, Section, useBeginning } from '../../components/page.tsx'
import { type Column, columnsOf, Table } from '../../components/table.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { Time } from '../../components/time.tsx'
import { modelsText, modelText } from '../../text/models.ts'
import { tasksText } from '../../text/tasks.ts'
import { RemoveModel } from './change-models.tsx'
import { priceTexts, type Setting, settingsOf, shellCommand } from './model-texts.ts'
import { ModelPlanView } from './plan.tsx'
import { useModelTest } from './test-model.tsx'

type Part = keyof typeof modelsText.details

/** One model: what it is and does now, its log, its settings. */
export function Details({ id }: { id: string }) {
  useBeginning()
  const isOwner = useSession().ownerCan('admin:read')
  const query = useModels()
  return (
    <>
      <BackLink page="models" />
      <Queried query={query} lines={8}>
        {({ models }) => {
          const model = models.find(one => one.model_id === id)
          if (!model) return <Failed failure={new ApiFailure(modelsText.noSuch(id), 404, 'model_not_found')} />
          return <Model model={model} isOwner={isOwner} />
        }}
      </Queried>
    </>
  )
}

function Model({ model, isOwner }: { model: Schema<'ModelStatus'>; isOwner: boolean }) {
  const { can } = useSession()
  const [search] = useSearchParams()
  const [, go] = useLocation()
  const { button, outcome } = useModelTest(model)
  const [isRemoving, setRemoving] = useState(false)
  const { model_id: id, status, tasks } = model
  const parts: readonly Part[] = isOwner ? ['about', 'plan', 'log', 'settings'] : ['about', 'plan']
  const current = parts.find(part => part === search.get('part')) ?? 'about'
  return (
    <>
      <PageHeading
        title={id}
        actions={
          <>
            {can('user:write') && status !== 'disabled' && button}
            <ModelActions id={id} status={status} small={false} />
            {isOwner && can('admin:write') && (
              <Button
                danger
                aria-label={`${modelsText.remove} ${id}`}
                onClick={() => setRemoving(true)}
                label={modelsText.remove}
              />
            )}
          </>
        }
        about={tasksText(tasks)}
      />
      <div aria-live="polite" className="mb-4 empty:hidden">
        {outcome}
      </div>
      <Tabs
        label={modelsText.parts}
        names={modelsText.details}
        offered={parts}
        current={current}
        choose={part => go(modelHref(id, part === 'about' ? '' : `?part=${part}`))}
      >
        {current === 'about' && (
          <>
            <ModelFactList model={model} />
            {isOwner ? <Engines id={id} /> : <p className="text-muted">{modelsText.ownOnly}</p>}
          </>
        )}
        {current === 'plan' && <ModelPlanView id={id} />}
        {current === 'log' && <LogView name={id} model={id} />}
        {current === 'settings' && <Settings id={id} />}
      </Tabs>
      {isRemoving && <RemoveModel id={id} close={() => setRemoving(false)} />}
    </>
  )
}

const { facts: names } = modelsText

/** What a model is, needs, costs, and does now. */
function ModelFactList({ model }: { model: Schema<'ModelStatus'> }) {
  const { context_length: context, memory_bytes: memory, eta_seconds: eta } = model
  const { can } = useSession()
  const prices = priceTexts(model.price)
  const waiting = modelsText.queue(model.queue_depth)
  const facts: readonly [name: string, value: ReactNode][] = [
    [names.state, <ModelStateView key="state" {...model} />],
    [
      names.queue,
      model.queue_depth > 0 && eta ? `${waiting}. ${modelText.expected(durationText(eta * 1_000))}` : waiting,
    ],
    [names.tasks, tasksText(model.tasks)],
    [names.engine, model.engine],
    [names.memory, memory === null ? modelsText.unknown : sizeText(memory)],
    [names.context, context === null ? null : modelsText.tokens(countText(context))],
    [names.benchmark, model.benchmark && <Benchmark key="benchmark" benchmark={model.benchmark} />],
    [names.price, prices.length === 0 ? modelsText.free : prices.join(', ')],
    [names.region, model.region],
    [names.features, model.capabilities.map(one => one.replaceAll('_', ' ')).join(', ')],
    [names.slug, model.slug],
    [names.profileOf, model.profile_of],
    [names.adapterOf, model.adapter_of],
    [names.aliases, model.aliases.join(', ')],
    [names.fallbacks, model.fallbacks.map(modelsText.fallback).join(', ')],
  ]
  return (
    <>
      <Facts
        rows={facts}
        className="border-line bg-surface divide-line mb-4 divide-y rounded-lg border"
        rowClass="grid gap-x-4 px-3 py-2 md:grid-cols-[10rem_1fr]"
      />
      {can('user:write') && (
        <p className="mb-6">
          <TextLink href={`/playground?model=${encodeURIComponent(model.model_id)}`} label={modelsText.tryIt} />
        </p>
      )}
    </>
  )
}

const columns: readonly Column<Setting>[] = columnsOf(modelsText.settingColumns, {
  key: ({ key }) => <code className="font-mono">{key}</code>,
  value: ({ value }) => <code className="font-mono break-all">{value}</code>,
})

/** The settings of a model. */
function Settings({ id }: { id: string }) {
  const query = useModelDetail(id)
  return (
    <>
      <p className="text-muted mb-3">{modelsText.settingsAbout}</p>
      <Queried query={query} lines={8}>
        {({ settings }) => (
          <Table label={modelsText.details.settings} columns={columns} rows={settingsOf(settings)} rowKey="key" />
        )}
      </Queried>
    </>
  )
}

type Engine = Schema<'ModelEngine'>

const engineColumns: readonly Column<Engine>[] = columnsOf(modelsText.engineColumns, {
  state: EngineStateView,
  process: ({ pid }) => pid ?? modelsText.remote,
  devices: ({ placement: { detail, advice, longer_context: ways } }) => (
    <>
      <span className={advice === null ? '' : 'text-warning'}>{detail}</span>
      {ways.map(sentence => (
        <span key={sentence} className="text-muted block max-w-xs text-xs">
          {sentence}
        </span>
      ))}
    </>
  ),
  memory: { number: true, show: ({ memory_bytes: bytes }) => sizeText(bytes) },
  slots: ({ busy, slots }) => modelText.busy(busy, slots),
  started: ({ started_at: at }) => <Time at={at} />,
  used: ({ last_used_at: at }) => <Time at={at} />,
})

/** The settings and engines of a model, which the owner of the machine may read. */
const useModelDetail = (id: string) =>
  useAnswer(['models', 'detail', id], () => api.GET('/api/models/{id}', at({ id })), {
    refetchInterval: 3_000,
  })

/** The engines of a model that run, with their commands, and its newest loads. */
function Engines({ id }: { id: string }) {
  const query = useModelDetail(id)
  return (
    <>
      <Section title={modelsText.engines}>
        <Queried query={query}>
          {({ engines }) =>
            engines.length === 0 ? (
              <Empty title={modelsText.noEngines}>{modelsText.noEnginesNext}</Empty>
            ) : (
              <div className="space-y-3">
                <Table label={modelsText.engines} columns={engineColumns} rows={engines} rowKey="id" />
                {engines
                  .filter(({ command }) => command.length > 0)
                  .map(({ id: engine, command }) => (
                    <CodeBlock key={engine} label={modelsText.command} code={shellCommand(command)} />
                  ))}
              </div>
            )
          }
        </Queried>
      </Section>
      <Loads loads={query.data?.loads ?? []} />
    </>
  )
}

type EngineLoad = Schema<'EngineLoad'>
const loadKinds = { loading: 'active', ready: 'good', failed: 'bad', ended: 'plain' } as const

const loadColumns: readonly Column<EngineLoad>[] = columnsOf(modelsText.loadColumns, {
  when: ({ started_at: at }) => <Time at={at} />,
  state: ({ state }) => <Badge kind={loadKinds[state]}>{modelsText.loadStates[state]}</Badge>,
  took: { number: true, show: ({ load_ms: ms }) => knownDuration(ms) },
  devices: { wideOnly: true, show: ({ devices }) => devices.join(', ') || '–' },
  ran: ({ ended_at: at }) => (at === null ? '–' : <Time at={at} />),
  reason: ({ reason }) => reason ?? '–',
})

/** When the model was loaded, how long it took, and why its engines ended. */
function Loads({ loads }: { loads: readonly EngineLoad[] }) {
  if (loads.length === 0) return null
  return (
    <Section title={modelsText.loads}>
      <p className="text-muted mb-2">{modelsText.loadsAbout}</p>
      <Table label={modelsText.loads} columns={loadColumns} rows={loads} rowKey="engine_id" />
    </Section>
  )
}
