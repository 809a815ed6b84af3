import type { InputHTMLAttributes, TextareaHTMLAttributes } from 'react'
import { controlClass, type FieldFacts, FormField } from './field.tsx'

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
