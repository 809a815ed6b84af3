import { type ReactNode, useId } from 'react'

export interface FieldFacts {
  label: string
  /** What to write, or what it does. */
  hint?: ReactNode
  /** Why the value is refused. */
  error?: string | undefined
}

/** A control with its label, hint and error, which are tied to it for screen readers. */
export function FormField({
  label,
  hint,
  error,
  children,
}: FieldFacts & {
  children: (control: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: true }) => ReactNode
}) {
  const id = useId()
  const described = [hint ? `${id}-hint` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ')
  return (
    <div className="min-w-0 space-y-1">
      <label htmlFor={id} className="block text-sm font-medium">
        {label}
      </label>
      {children({
        id,
        ...(described ? { 'aria-describedby': described } : {}),
        ...(error ? { 'aria-invalid': true as const } : {}),
      })}
      {hint && (
        <p id={`${id}-hint`} className="text-muted text-xs">
          {hint}
        </p>
      )}
      {error && (
        <p id={`${id}-error`} className="text-bad text-xs">
          {error}
        </p>
      )}
    </div>
  )
}

/** The look of a control that takes text. */
export const controlClass =
  'bg-surface border-control aria-invalid:border-bad w-full rounded-md border px-2.5 min-h-9 disabled:opacity-50'
