import { useId } from 'react'
import { describedBy, Hint } from '../../../components/fields.tsx'
import { playgroundText as text } from '../../../text/playground.ts'
import { drawnShape } from './shapes.ts'

interface ShapeProps {
  label: string
  hint: string
  error: string | undefined
  options: readonly string[]
  /** Empty for the default. */
  value: string
  change: (value: string) => void
}

/** A choice of shapes, each drawn. */
export function ShapeField({ label, hint, error, options, value, change }: ShapeProps) {
  const id = useId()
  return (
    <fieldset className="space-y-1" aria-describedby={describedBy(id, hint, error)}>
      <legend className="mb-1 text-sm font-medium">{label}</legend>
      <div className="flex flex-wrap gap-1.5">
        {['', ...options].map(option => (
          <label
            key={option}
            className="border-line bg-surface hover:bg-raised has-checked:border-accent has-checked:bg-accent-soft has-focus-visible:outline-accent flex min-h-16 min-w-16 flex-col items-center justify-end gap-1 rounded-md border p-1.5 text-xs has-focus-visible:outline-2"
          >
            <input
              type="radio"
              name={id}
              value={option}
              checked={value === option}
              onChange={() => change(option)}
              className="sr-only"
            />
            <Shape value={option} />
            {option === '' ? text.byDefault : option.replaceAll('_', ' ')}
          </label>
        ))}
      </div>
      <Hint id={id} hint={hint} error={error} />
    </fieldset>
  )
}

/** The shape as a rectangle; what has none is dashed. */
function Shape({ value }: { value: string }) {
  const shape = drawnShape(value)
  return (
    <span aria-hidden className="flex size-7 items-center justify-center">
      <span
        style={shape ?? { width: 20, height: 20 }}
        className={`rounded-[3px] border-2 border-current ${shape ? '' : 'border-dashed opacity-60'}`}
      />
    </span>
  )
}
