import type { LucideIcon } from 'lucide-react'
import { type ButtonHTMLAttributes, type ReactNode } from 'react'
import { Link } from 'wouter'

interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'children'> {
  label: string
  /** The one main action of a view. */
  primary?: boolean
  /** Deletes or stops something. */
  danger?: boolean
  small?: boolean
  /** Something runs that this button began: it cannot be pressed again. */
  busy?: boolean | undefined
  icon?: LucideIcon
}

type Look = Pick<ButtonProps, 'primary' | 'danger' | 'small'>

const look = ({ primary, danger }: Look): string =>
  primary
    ? 'bg-accent text-accent-text border-accent hover:opacity-90'
    : danger
      ? 'border-line text-bad hover:bg-bad-soft bg-surface'
      : 'border-line bg-surface hover:bg-raised'

/** The classes of a button, for a link that looks like one. */
export const buttonClass = (props: Look): string =>
  `inline-flex items-center justify-center gap-1.5 rounded-md border font-medium disabled:cursor-not-allowed disabled:opacity-50 aria-disabled:cursor-not-allowed aria-disabled:opacity-50 ${
    props.small ? 'min-h-7 px-2 text-xs' : 'min-h-9 px-3'
  } ${look(props)}`

/** Moves along the lower edge of a button while what it began goes on. */
export const BusyBar = () => (
  <span aria-hidden className="absolute inset-x-0 bottom-0 h-0.5 overflow-hidden">
    <span className="animate-busy block h-full w-1/3 bg-current" />
  </span>
)

export function Button({ primary, danger, small, busy, icon: Icon, label, className = '', ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      // It keeps the focus while it is busy, which a disabled one loses.
      aria-disabled={busy || undefined}
      aria-busy={busy || undefined}
      onClick={busy ? event => event.preventDefault() : rest.onClick}
      className={`relative overflow-hidden ${buttonClass({ primary, danger, small })} ${className}`}
    >
      {busy && <BusyBar />}
      {Icon && <Icon aria-hidden className="size-4 shrink-0" />}
      {label}
    </button>
  )
}

/** A button that is only an icon; its label is read aloud and shown when the pointer rests on it. */
export const IconButton = ({
  icon: Icon,
  label,
  danger,
  className = '',
  ...rest
}: { icon: LucideIcon; label: string; danger?: boolean } & ButtonHTMLAttributes<HTMLButtonElement>) => (
  <button
    type="button"
    {...rest}
    aria-label={label}
    title={label}
    className={`hover:bg-raised inline-flex size-8 shrink-0 items-center justify-center rounded-md disabled:cursor-not-allowed disabled:opacity-50 ${danger ? 'text-bad' : 'text-muted hover:text-text'} ${className}`}
  >
    <Icon aria-hidden className="size-4" />
  </button>
)

/** A link that looks like a button. */
export const ButtonLink = ({
  href,
  icon: Icon,
  label,
  ...props
}: Look & Pick<ButtonProps, 'icon' | 'label'> & { href: string }) => (
  <Link href={href} className={buttonClass(props)}>
    {Icon && <Icon aria-hidden className="size-4" />}
    {label}
  </Link>
)

/** A link in text or in a table. */
export const TextLink = ({
  label,
  className = '',
  ...rest
}: {
  href: string
  label: ReactNode
  className?: string
  'aria-label'?: string
}) => (
  <Link {...rest} className={`text-accent hover:underline ${className}`}>
    {label}
  </Link>
)
