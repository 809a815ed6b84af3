import { Columns2, X } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button, IconButton } from '../../components/button.tsx'
import { modelOption } from '../../components/options.tsx'
import { PickerField } from '../../components/picker-field.tsx'
import { chatText as text } from '../../text/chat.ts'
import type { ModelChoice as Model } from '../playground/choices.ts'
import { type AnswererChoice, maxAnswerers } from './answerers.ts'

interface ModelChoiceProps {
  able: readonly Model[]
  choice: AnswererChoice
  children: ReactNode
}

/** The model that answers, and others that answer beside it; `children` is chosen beside them. */
export const ModelChoice = ({ able, choice: { models, change, add, remove }, children }: ModelChoiceProps) => (
  <div className="flex flex-wrap items-center gap-2">
    {models.map(({ id }, at) => (
      <div key={at} className="flex max-w-full items-center">
        <div className="w-60 max-w-full">
          <PickerField
            isLabelHidden
            label={at === 0 ? text.model : text.compareWith(at)}
            value={id}
            choices={able
              .filter(one => one.id === id || !models.includes(one))
              .map(one => modelOption(one.id, one.status))}
            change={next => change(at, next)}
          />
        </div>
        {at > 0 && <IconButton icon={X} label={text.stopComparing(id)} onClick={() => remove(at)} />}
      </div>
    ))}
    {able.length > models.length && models.length < maxAnswerers && (
      <Button icon={Columns2} onClick={add} label={text.compare} />
    )}
    {children}
  </div>
)
