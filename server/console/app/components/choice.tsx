import type { InputHTMLAttributes, SelectHTMLAttributes } from 'react'
import { useId } from 'react'
import { controlClass, type FieldFacts, FormField } from './field.tsx'

export interface Option {
  value: string
  name: string
}

/** One of several values. */
export function SelectField({
  label,
  hint,
  error,
  options,
  className = '',
  ...rest
}: FieldFacts & { options: readonly Option[] } & SelectHTMLAttributes<HTMLSelectElement>) {
  return (
    <FormField label={label} hint={hint} error={error}>
      {control => (
        <select {...rest} {...control} className={`${controlClass} ${className}`}>
          {options.map(({ value, name }) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      )}
    </FormField>
  )
}

/** Yes or no. */
export function Checkbox({
  label,
  hint,
  ...rest
}: { label: string; hint?: string } & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId()
  return (
    <div className="flex items-start gap-2">
      <input
        {...rest}
        id={id}
        type="checkbox"
        aria-describedby={hint ? `${id}-hint` : undefined}
        className="accent-accent mt-0.5 size-4 shrink-0"
      />
      <div>
        <label htmlFor={id}>{label}</label>
        {hint && (
          <p id={`${id}-hint`} className="text-muted text-xs">
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}
