import type { Schema } from '../api/client.ts'
import { modelText } from '../text/models.ts'
import { Badge, type BadgeKind } from './badge.tsx'

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
