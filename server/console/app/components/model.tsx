import { Link } from 'wouter'
import { api, at, dataOf, type Schema, useSession } from '../api/client.ts'
import { modelText } from '../text/models.ts'
import { modelHref } from './addresses.ts'
import { useAction } from './announcements.tsx'
import { Badge, type BadgeKind } from './badge.tsx'
import { Button } from './button.tsx'
import { sentenceText } from './format.ts'
import { ModelMark } from './marks.tsx'

export type ModelState = Schema<'ModelStatus'>['status']

const kinds: Record<ModelState, BadgeKind> = {
  warm: 'good',
  loading: 'active',
  cold: 'plain',
  unavailable: 'bad',
  disabled: 'plain',
}

/** Whether a model can be used now, and why not. */
export const ModelStateView = ({ status, reason }: Pick<Schema<'ModelStatus'>, 'status' | 'reason'>) => (
  <>
    <Badge kind={kinds[status]}>{modelText.states[status]}</Badge>
    {reason && <span className="text-muted mt-1 block max-w-md text-xs">{sentenceText(reason)}</span>}
  </>
)

const engineKinds = { starting: 'active', ready: 'good', parked: 'plain', stopping: 'plain' } as const

/** Whether an engine takes requests. */
export const EngineStateView = ({ state }: { state: Schema<'EngineStatus'>['state'] }) => (
  <Badge kind={engineKinds[state]}>{modelText.engineStates[state]}</Badge>
)

/** Seconds until the answer says how far it is; the work continues. */
const waitSeconds = 1

/** Loads or unloads a model; nothing for a session that may not. */
export function ModelActions({ id, status, small = true }: { id: string; status: ModelState; small?: boolean }) {
  const { ownerCan } = useSession()
  const { mutate, isPending } = useAction(
    (action: 'load' | 'unload') => dataOf(api.POST(`/api/models/{id}/${action}`, at({ id }, { wait: waitSeconds }))),
    (model, action) => {
      const isLoaded = model.status === 'warm'
      if (action === 'load') return isLoaded ? modelText.loaded(id) : modelText.loading(id)
      return isLoaded ? modelText.unloading(id) : modelText.unloaded(id)
    },
    ['overview'],
    ['models'],
  )
  if (!ownerCan('admin:write') || status === 'disabled') return null
  const action = status === 'warm' || status === 'loading' ? 'unload' : 'load'
  return (
    <Button
      small={small}
      busy={isPending}
      aria-label={`${modelText[action]} ${id}`}
      onClick={() => mutate(action)}
      label={modelText[action]}
    />
  )
}

/** Leads to the page of a model. */
export const ModelLink = ({ id }: { id: string }) => (
  <span className="inline-flex max-w-full items-baseline gap-1.5 md:min-w-40">
    <ModelMark id={id} />
    <Link href={modelHref(id)} className="text-accent min-w-0 break-words hover:underline">
      {id}
    </Link>
  </span>
)
