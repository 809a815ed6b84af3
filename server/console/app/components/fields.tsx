import { Info, Search } from 'lucide-react'
import {
  type InputHTMLAttributes,
  type ReactNode,
  type RefObject,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useEffect,
  useId,
  useRef,
  useState,
} from 'react'
import { shellText } from '../text/shell.ts'

interface FieldFacts {
  label: string
  /** What to write, or what it does. */
  hint?: ReactNode
  /** Why the value is refused. */
  error?: string | undefined
}

interface FormFieldProps extends FieldFacts {
  /** Where it is plain what the control is for: only screen readers say it. */
  isLabelHidden?: boolean
  children: (control: {
    id: string
    'aria-describedby': string | undefined
    'aria-invalid': true | undefined
  }) => ReactNode
}

/** A control with its label, hint and error, which are tied to it for screen readers. */
export function FormField({ label, hint, error, isLabelHidden = false, children }: FormFieldProps) {
  const id = useId()
  const [isHelped, setHelped] = useState(false)
  return (
    <div className="min-w-0 space-y-1">
      <div className={isLabelHidden ? 'sr-only' : 'flex items-center gap-1'}>
        <label id={`${id}-label`} htmlFor={id} className="text-sm font-medium">
          {label}
        </label>
        {hint && <HelpButton of={id} isOpen={isHelped} show={setHelped} />}
      </div>
      {children({
        id,
        'aria-describedby': describedBy(id, hint, error),
        'aria-invalid': error ? true : undefined,
      })}
      <Hint id={id} hint={hint} error={error} isShown={isHelped} />
    </div>
  )
}

interface HelpButtonProps {
  /** The id of the control. */
  of: string
  isOpen: boolean
  show: (isOpen: boolean) => void
}

/** Shows the hint of a control. Screen readers read the hint with the control, also while it is not shown. */
const HelpButton = ({ of, isOpen, show }: HelpButtonProps) => (
  <button
    type="button"
    aria-label={shellText.help}
    title={shellText.help}
    aria-expanded={isOpen}
    aria-controls={`${of}-hint`}
    onClick={() => show(!isOpen)}
    className={`inline-flex size-6 shrink-0 items-center justify-center rounded-md ${isOpen ? 'text-accent' : 'text-muted hover:text-text'}`}
  >
    <Info aria-hidden className="size-3.5" />
  </button>
)

/** The ids of what `Hint` shows, for the control that it is about. */
export const describedBy = (id: string, hint: ReactNode, error: string | undefined): string | undefined =>
  [hint ? `${id}-hint` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ') || undefined

/** The hint and the error of a control. A hint that is not shown still describes the control. */
export const Hint = ({
  id,
  hint,
  error,
  isShown = true,
}: { id: string; isShown?: boolean } & Omit<FieldFacts, 'label'>) => (
  <>
    {hint && (
      <p id={`${id}-hint`} hidden={!isShown} className="text-muted text-xs">
        {hint}
      </p>
    )}
    {error && (
      <p id={`${id}-error`} className="text-bad text-xs">
        {error}
      </p>
    )}
  </>
)

/** The look of a control that takes text. */
export const controlClass =
  'bg-surface border-control aria-invalid:border-bad w-full rounded-md border px-2.5 min-h-9 disabled:opacity-50'

/** A control with a value that a person changes; without `change` the form is read when it is sent. */
type LabelledProps<Props> = FieldFacts & Omit<Props, 'onChange'> & { change?: ((value: string) => void) | undefined }

/** Gives a control of the browser its label, hint and error. */
function labelled<Props>(draw: (props: Props & { className: string }) => ReactNode) {
  return function Labelled({ label, hint, error, change, ...rest }: LabelledProps<Props>) {
    const { className = '' } = rest as { className?: string }
    const shared = {
      ...rest,
      onChange: change && ((event: { target: { value: string } }) => change(event.target.value)),
      className: `${controlClass} ${className}`,
    }
    return (
      <FormField label={label} hint={hint} error={error}>
        {control => draw({ ...shared, ...control } as unknown as Props & { className: string })}
      </FormField>
    )
  }
}

/** One line of text, a number, a date: `type` says which. */
export const TextField = labelled<InputHTMLAttributes<HTMLInputElement>>(props => <input {...props} />)

/** The name that people give to an organization or a token: the first field of its form. */
export const nameField = { name: 'name', required: true, maxLength: 128, autoFocus: true, autoComplete: 'off' } as const

/** Several lines of text. */
export const TextArea = labelled<TextareaHTMLAttributes<HTMLTextAreaElement>>(props => (
  <textarea rows={4} {...props} className={`${props.className} py-1.5`} />
))

/** A value to choose: a text, which is shown as it is, or something with an id and a name. */
export type Option = string | { id: string; name: string }

/** The values that a table names, or some of them, as options. */
export const optionsOf = (names: Readonly<Record<string, string>>, ids: readonly string[] = Object.keys(names)) =>
  ids.map(id => ({ id, name: names[id]! }))

interface SelectProps extends SelectHTMLAttributes<HTMLSelectElement> {
  options: readonly Option[]
  /** What choosing no value is called, where that is possible. */
  none?: string
}

/** One of several values. */
export const SelectField = labelled<SelectProps>(({ options, none, ...props }) => (
  <select {...props}>
    {none !== undefined && <option value="">{none}</option>}
    {options.map(one => (
      <option key={typeof one === 'string' ? one : one.id} value={typeof one === 'string' ? one : one.id}>
        {typeof one === 'string' ? one : one.name}
      </option>
    ))}
  </select>
))

/** Yes or no. */
export function Checkbox({
  label,
  hint,
  change,
  ...rest
}: { label: string; hint?: string; change?: (checked: boolean) => void } & Omit<
  InputHTMLAttributes<HTMLInputElement>,
  'onChange'
>) {
  const id = useId()
  const [isHelped, setHelped] = useState(false)
  return (
    <div className="flex items-start gap-2">
      <input
        {...rest}
        id={id}
        type="checkbox"
        onChange={change && (event => change(event.target.checked))}
        aria-describedby={hint ? `${id}-hint` : undefined}
        className="accent-accent mt-1 size-4 shrink-0"
      />
      <div className="min-w-0">
        <div className="flex min-h-6 items-center gap-1">
          <label htmlFor={id}>{label}</label>
          {hint && <HelpButton of={id} isOpen={isHelped} show={setHelped} />}
        </div>
        <Hint id={id} hint={hint} isShown={isHelped} />
      </div>
    </div>
  )
}

/** The search of a page; `/` puts the cursor into it. */
export const SearchField = (props: { label: string; value: string; change: (value: string) => void }) => (
  <div className="relative min-w-48 flex-1">
    <Search aria-hidden className="text-muted pointer-events-none absolute top-2.5 left-2.5 size-4" />
    <input
      type="search"
      aria-label={props.label}
      placeholder={props.label}
      value={props.value}
      onChange={event => props.change(event.target.value)}
      className={`${controlClass} pl-8`}
    />
  </div>
)

/** Opens a `<details>` when something in it needs to be seen, such as a fault. Only people close it. */
export function useOpened(needed: boolean): RefObject<HTMLDetailsElement | null> {
  const details = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    if (needed && details.current) details.current.open = true
  }, [needed])
  return details
}
