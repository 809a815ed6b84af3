import { ArrowLeft } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Link, useLocation, useSearchParams } from 'wouter'
import { ApiFailure, type Schema, useSession } from '../../api/client.ts'
import { useModels } from '../../api/queries.ts'
import { modelHref } from '../../components/addresses.ts'
import { Button } from '../../components/button.tsx'
import { countText, durationText, sizeText } from '../../components/format.ts'
import { LogView } from '../../components/log/log-view.tsx'
import { ModelActions, ModelStateView } from '../../components/model.tsx'
import { Facts, Failed, PageHeading, Queried, useBeginning } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { modelsText, modelText } from '../../text/models.ts'
import { tasksText } from '../../text/tasks.ts'
import { Engines, useModelDetail } from './engines.tsx'
import { priceTexts, type Setting, settingsOf } from './model-texts.ts'
import { RemoveModel } from './remove-model.tsx'
import { useModelTest } from './test-model.tsx'

type Part = keyof typeof modelsText.details

/** One model: what it is and does now, its log, its settings. */
export function Details({ id }: { id: string }) {
  useBeginning()
  const { can, session } = useSession()
  const isOwner = can('admin:read') && session.owns_machine
  const query = useModels()
  return (
    <>
      <Link href="/models" className="text-accent mb-2 inline-flex items-center gap-1 hover:underline">
        <ArrowLeft aria-hidden className="size-4" />
        {modelsText.back}
      </Link>
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
  const parts: readonly Part[] = isOwner ? ['about', 'log', 'settings'] : ['about']
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
              <Button danger aria-label={modelsText.removeOf(id)} onClick={() => setRemoving(true)}>
                {modelsText.remove}
              </Button>
            )}
          </>
        }
      >
        {tasksText(tasks)}
      </PageHeading>
      <div aria-live="polite" className="mb-4 empty:hidden">
        {outcome}
      </div>
      <Tabs
        label={modelsText.parts}
        tabs={parts.map(part => ({ id: part, name: modelsText.details[part] }))}
        current={current}
        choose={part => go(modelHref(id, part === 'about' ? '' : `?part=${part}`))}
      >
        {current === 'about' && (
          <>
            <ModelFactList model={model} />
            {isOwner ? <Engines id={id} /> : <p className="text-muted">{modelsText.ownOnly}</p>}
          </>
        )}
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
    [names.price, prices.length === 0 ? modelsText.free : prices.join(', ')],
    [names.region, model.region],
    [names.features, model.capabilities.map(one => one.replaceAll('_', ' ')).join(', ')],
    [names.slug, model.slug],
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
          <Link
            href={`/playground?model=${encodeURIComponent(model.model_id)}`}
            className="text-accent hover:underline"
          >
            {modelsText.playground}
          </Link>
        </p>
      )}
    </>
  )
}

const columns: readonly Column<Setting>[] = [
  { name: modelsText.settingColumns.key, show: ({ key }) => <code className="font-mono">{key}</code> },
  {
    name: modelsText.settingColumns.value,
    show: ({ value }) => <code className="font-mono break-all">{value}</code>,
  },
]

/** The settings of a model. */
function Settings({ id }: { id: string }) {
  const query = useModelDetail(id)
  return (
    <>
      <p className="text-muted mb-3">{modelsText.settingsAbout}</p>
      <Queried query={query} lines={8}>
        {({ settings }) => (
          <Table
            label={modelsText.details.settings}
            columns={columns}
            rows={settingsOf(settings)}
            rowKey={({ key }) => key}
          />
        )}
      </Queried>
    </>
  )
}
