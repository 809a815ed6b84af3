import { Search } from 'lucide-react'
import {
  type InputHTMLAttributes,
  type ReactNode,
  type RefObject,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useEffect,
  useId,
  useRef,
} from 'react'
import { shellText } from '../text/shell.ts'

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

/** One line of text, a number, a date: `type` says which. */
export function TextField({
  label,
  hint,
  error,
  className = '',
  ...rest
}: FieldFacts & InputHTMLAttributes<HTMLInputElement>) {
  return (
    <FormField label={label} hint={hint} error={error}>
      {control => <input {...rest} {...control} className={`${controlClass} ${className}`} />}
    </FormField>
  )
}

/** Several lines of text. */
export function TextArea({
  label,
  hint,
  error,
  className = '',
  ...rest
}: FieldFacts & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return (
    <FormField label={label} hint={hint} error={error}>
      {control => <textarea rows={4} {...rest} {...control} className={`${controlClass} py-1.5 ${className}`} />}
    </FormField>
  )
}

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

/** The search of a page; `/` puts the cursor into it. */
export function SearchField({
  value,
  change,
  label = shellText.search,
}: {
  value: string
  change: (value: string) => void
  label?: string
}) {
  return (
    <div className="relative min-w-48 flex-1">
      <Search aria-hidden className="text-muted pointer-events-none absolute top-2.5 left-2.5 size-4" />
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        value={value}
        onChange={event => change(event.target.value)}
        className={`${controlClass} pl-8`}
      />
    </div>
  )
}

/** Opens a `<details>` when something in it needs to be seen, such as a fault. Only people close it. */
export function useOpened(needed: boolean): RefObject<HTMLDetailsElement | null> {
  const details = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    if (needed && details.current) details.current.open = true
  }, [needed])
  return details
}
