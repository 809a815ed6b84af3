import { useQuery } from '@tanstack/react-query'
import { ArrowLeft } from 'lucide-react'
import { useState } from 'react'
import { Link, useLocation, useSearchParams } from 'wouter'
import { api, dataOf, type Schema } from '../../api/client.ts'
import { ApiFailure } from '../../api/failure.ts'
import { useSession } from '../../api/session.ts'
import { modelHref } from '../../components/addresses.ts'
import { Button } from '../../components/button.tsx'
import { LogView } from '../../components/log/log-view.tsx'
import { ModelActions } from '../../components/model-actions.tsx'
import { Failed, PageHeading, Queried, useBeginning } from '../../components/page.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { modelsText } from '../../text/models.ts'
import { tasksText } from '../../text/tasks.ts'
import { Engines } from './engines.tsx'
import { ModelFactList } from './facts.tsx'
import { RemoveModel } from './remove-model.tsx'
import { Settings } from './settings.tsx'
import { useModelTest } from './test-model.tsx'

type Part = keyof typeof modelsText.details

/** One model: what it is and does now, its log, its settings. */
export function Details({ id }: { id: string }) {
  useBeginning()
  const { can, session } = useSession()
  const isOwner = can('admin:read') && session.owns_machine
  const query = useQuery({
    queryKey: ['models', 'list'],
    queryFn: () => dataOf(api.GET('/api/model-status')),
    refetchInterval: 3_000,
  })
  return (
    <>
      <Link href="/models" className="text-accent mb-2 inline-flex items-center gap-1 hover:underline">
        <ArrowLeft aria-hidden className="size-4" />
        {modelsText.back}
      </Link>
      <Queried query={query} lines={8}>
        {({ models }) => {
          const model = models.find(one => one.model_id === id)
          if (!model)
            return <Failed failure={new ApiFailure(modelsText.noSuch(id), { status: 404, code: 'model_not_found' })} />
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
