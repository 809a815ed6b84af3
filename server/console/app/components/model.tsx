import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, dataOf, type Schema, useSession } from '../api/client.ts'
import { modelText } from '../text/models.ts'
import { useAnnounce } from './announcements.tsx'
import { Badge, type BadgeKind } from './badge.tsx'
import { Button } from './button.tsx'

export type ModelState = Schema<'ModelStatus'>['status']

const kinds: Record<ModelState, BadgeKind> = {
  warm: 'good',
  loading: 'active',
  cold: 'plain',
  unavailable: 'bad',
  disabled: 'plain',
}

/** Whether a model can be used now, and why not. */
export function ModelStateView({ status, reason }: { status: ModelState; reason: string | null }) {
  return (
    <>
      <Badge kind={kinds[status]}>{modelText.states[status]}</Badge>
      {reason && <span className="text-muted mt-1 block max-w-md text-xs">{reason}</span>}
    </>
  )
}

/** Seconds until the answer says how far it is; the work continues. */
const waitSeconds = 1

/** Loads or unloads a model; nothing for a session that may not. */
export function ModelActions({ id, status, small = true }: { id: string; status: ModelState; small?: boolean }) {
  const { can, session } = useSession()
  const queries = useQueryClient()
  const announce = useAnnounce()
  const { mutate, isPending } = useMutation({
    mutationFn: (action: 'load' | 'unload') =>
      dataOf(api.POST(`/api/models/{id}/${action}`, { params: { path: { id }, query: { wait: waitSeconds } } })),
    onSuccess: (model, action) => {
      const isLoaded = model.status === 'warm'
      if (action === 'load') announce('good', isLoaded ? modelText.loaded(id) : modelText.loading(id))
      else announce('good', isLoaded ? modelText.unloading(id) : modelText.unloaded(id))
    },
    onError: failure => announce('bad', failure.message),
    onSettled: () => Promise.all(['overview', 'models'].map(page => queries.invalidateQueries({ queryKey: [page] }))),
  })
  if (!can('admin:write') || !session.owns_machine || status === 'disabled') return null
  const isIn = status === 'warm' || status === 'loading'
  return isIn ? (
    <Button small={small} busy={isPending} aria-label={modelText.unloadOf(id)} onClick={() => mutate('unload')}>
      {modelText.unload}
    </Button>
  ) : (
    <Button small={small} busy={isPending} aria-label={modelText.loadOf(id)} onClick={() => mutate('load')}>
      {modelText.load}
    </Button>
  )
}
