import { useId } from 'react'
import { api, useAnswer } from '../../api/client.ts'
import { Checkbox } from '../../components/fields.tsx'
import { Queried } from '../../components/page.tsx'
import { webhooksText } from '../../text/webhooks.ts'
import { eventGroups, everything, isChosen, isCovered, withChoice } from './event-groups.ts'

const text = webhooksText.form

/** The types of events that there are. */
export const useEventTypes = () =>
  useAnswer(['webhooks', 'types'], () => api.GET('/std/v1/webhook_event_types'), {
    staleTime: Number.POSITIVE_INFINITY,
  })

interface EventChoiceProps {
  chosen: readonly string[]
  change: (chosen: string[]) => void
  /** Why the choice is refused. */
  error: string | undefined
}

/** Types of events to tick, in groups; a group and everything can be chosen at once. */
export function EventChoice({ chosen, change, error }: EventChoiceProps) {
  const id = useId()
  const box = (type: string, label: string) => (
    <Checkbox
      key={type}
      label={label}
      checked={isChosen(chosen, type)}
      disabled={isCovered(chosen, type)}
      change={ticked => change(withChoice(chosen, type, ticked))}
    />
  )
  return (
    <fieldset aria-labelledby={id} className="space-y-2">
      <legend id={id} className="text-sm font-medium">
        {text.some}
      </legend>
      {box(everything, text.all)}
      <Queried query={useEventTypes()}>
        {({ data: types }) => {
          const groups = eventGroups(types)
          const shown = new Set([everything, ...types, ...groups.map(({ pattern }) => pattern)])
          const others = chosen.filter(one => !shown.has(one))
          return (
            <div hidden={chosen.includes(everything)} className="space-y-2">
              {others.map(pattern => box(pattern, pattern))}
              {groups.map(({ name, pattern, types: ofGroup }) => (
                <details
                  key={pattern}
                  open={ofGroup.some(one => chosen.includes(one))}
                  className="border-line rounded-md border px-3 py-1.5"
                >
                  <summary className="cursor-pointer">
                    <code className="font-mono text-xs">{name}</code>
                  </summary>
                  <div className="mt-1 pb-1 pl-1">
                    {box(pattern, text.allOf(name))}
                    <div className="grid sm:grid-cols-2">
                      {ofGroup.map(type => box(type, type.slice(name.length + 1)))}
                    </div>
                  </div>
                </details>
              ))}
            </div>
          )
        }}
      </Queried>
      {error && (
        <p role="alert" className="text-bad text-xs">
          {error}
        </p>
      )}
    </fieldset>
  )
}
