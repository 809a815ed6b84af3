import type { Schema } from '../api/schema.ts'
import { modelText } from '../text/models.ts'
import { organizationsText, tokensText } from '../text/organizations.ts'
import { taskName } from '../text/tasks.ts'
import { kindOfTask } from './colours.ts'
import { KindIcon, ModelMark } from './marks.tsx'
import type { Choice } from './matching.ts'

/** A task to choose, with the icon of what it makes. */
export function taskOption(id: Schema<'Task'>): Choice {
  const kind = kindOfTask(id)
  return { id, name: taskName(id), mark: kind && <KindIcon kind={kind} /> }
}

/** An organization to choose, with its state unless it is active. */
export const organizationOption = ({ id, name, status }: Schema<'Organization'>): Choice => ({
  id,
  name,
  note: status === 'active' ? undefined : organizationsText.status[status],
})

/** A token to choose, with its state unless it is active. */
export const tokenOption = ({ id, name, status }: Schema<'Token'>): Choice => ({
  id,
  name,
  note: status === 'active' ? undefined : tokensText.status[status],
})

/** A model to choose, in its colour and with its state where that is known. */
export const modelOption = (id: string, status?: Schema<'ModelStatus'>['status']): Choice => ({
  id,
  name: id,
  note: status && modelText.states[status],
  mark: <ModelMark id={id} />,
})
