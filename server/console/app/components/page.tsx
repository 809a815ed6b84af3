import type { UseInfiniteQueryResult, UseQueryResult } from '@tanstack/react-query'
import { ArrowLeft, CircleAlert, CircleCheck, Info, TriangleAlert } from 'lucide-react'
import { type ReactNode, useEffect, useLayoutEffect, useState } from 'react'
import { Link } from 'wouter'
import { isGone } from '../api/client.ts'
import { shellText } from '../text/shell.ts'
import { Button } from './button.tsx'
import { useShownName } from './page-title.ts'
import { asLeft } from './way-back.ts'

/**
 * The title of a page with the state of what it shows, what it is about, and its actions. `name` is in the title of the
 * window, where `title` is more than text.
 */
export function PageHeading({
  title,
  name = typeof title === 'string' ? title : undefined,
  badge,
  about,
  actions,
}: Partial<Record<'title' | 'badge' | 'about' | 'actions', ReactNode>> & { name?: string | undefined }) {
  useShownName(name)
  return (
    <div className="mb-4 flex flex-wrap items-start justify-between gap-3">
      <div className="min-w-0">
        <h1
          className={`text-xl font-semibold tracking-tight break-words ${badge ? 'flex flex-wrap items-center gap-2' : ''}`}
        >
          {title}
          {badge}
        </h1>
        {about && <p className="text-muted mt-0.5">{about}</p>}
      </div>
      {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
    </div>
  )
}

/** A part of a page with a heading. */
export const Section = ({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) => (
  <section aria-label={title} className="mb-8 min-w-0">
    <div className="mb-2 flex flex-wrap items-center justify-between gap-2">
      <h2 className="text-base font-semibold">{title}</h2>
      {actions}
    </div>
    {children}
  </section>
)

/** Nothing is here yet: says so, and what to do next. */
export const Empty = ({ title, children }: { title: string; children?: ReactNode }) => (
  <div className="border-line text-muted rounded-lg border border-dashed px-4 py-8 text-center">
    <p className="text-text font-medium">{title}</p>
    {children && <div className="mt-1 flex flex-col items-center gap-3">{children}</div>}
  </div>
)

/** Leads to a guide, which is outside of the console. */
export const GuideLink = ({ guide, label }: { guide: string; label: string }) => (
  <a href={`/docs/guides/${guide}`} className="text-accent hover:underline">
    {label}
  </a>
)

const kinds = {
  info: { icon: Info, look: 'bg-accent-soft text-accent' },
  good: { icon: CircleCheck, look: 'bg-good-soft text-good' },
  warning: { icon: TriangleAlert, look: 'bg-warning-soft text-warning' },
  bad: { icon: CircleAlert, look: 'bg-bad-soft text-bad' },
}

interface NoticeProps {
  kind: keyof typeof kinds
  children: ReactNode
  className?: string
}

/** A sentence that a person should see: `bad` and `warning` are read aloud at once. */
export function Notice({ kind, children, className = '' }: NoticeProps) {
  const { icon: Icon, look } = kinds[kind]
  return (
    <div
      role={kind === 'bad' || kind === 'warning' ? 'alert' : 'status'}
      className={`flex items-start gap-2 rounded-md px-3 py-2 ${look} ${className}`}
    >
      <Icon aria-hidden className="mt-0.5 size-4 shrink-0" />
      <div className="flex min-w-0 flex-1 flex-wrap items-center gap-2 break-words">{children}</div>
    </div>
  )
}

interface FailedProps {
  failure: Error
  retry?: () => void
  retryText?: string
}

/** What stands in the place of something that could not be read, and how to try again. */
export function Failed({ failure, retry, retryText = shellText.retry }: FailedProps) {
  return (
    <Notice kind="bad">
      <span className="min-w-0 flex-1">{failure.message}</span>
      {retry && <Button small onClick={retry} label={retryText} />}
    </Notice>
  )
}

/** Milliseconds in which nothing is shown: most answers are there before, and a flash is worse than nothing. */
const patienceMs = 300

/** Grey lines in the place of what is being read. */
export function Loading({ lines = 3 }: { lines?: number }) {
  const [shown, setShown] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), patienceMs)
    return () => clearTimeout(timer)
  }, [])
  // Its place is taken at once: what stands below would move under the pointer twice.
  return (
    <div role="status" className={`space-y-3 ${shown ? '' : 'invisible'}`}>
      <span className="sr-only">{shellText.loading}</span>
      {Array.from({ length: lines }, (_, at) => (
        <div key={at} aria-hidden className="bg-raised h-5 animate-pulse rounded" />
      ))}
    </div>
  )
}

/** What stands below an answer: it is read at once and shown when it has its place, or it would move under the pointer. */
export const Below = ({ isSettled, children }: { isSettled: boolean; children: ReactNode }) => (
  <div className={isSettled ? undefined : 'invisible'}>{children}</div>
)

/**
 * Shows the data of a query; before it is there, grey lines; if it cannot be read, why. Data that was read before stays
 * while a failure is shown above it.
 */
export function Queried<T>({
  query,
  lines = 3,
  gone,
  children,
}: {
  query: Pick<UseQueryResult<T>, 'data' | 'error' | 'refetch'>
  /** Height of the grey lines. */
  lines?: number
  /** Says that there is no such thing, where a person may ask for one that was deleted. */
  gone?: string
  children: (data: T) => ReactNode
}) {
  const { data, error, refetch } = query
  if (gone !== undefined && isGone(error)) return <Notice kind="warning">{gone}</Notice>
  return (
    <>
      {error && <Failed failure={error} retry={() => void refetch()} />}
      {data !== undefined ? children(data) : error ? null : <Loading lines={lines} />}
    </>
  )
}

/** Scrolls to the beginning of the page. */
export function showBeginning(): void {
  // The page scrolls on a narrow screen, and the part beside the navigation on a wide one.
  scrollTo(0, 0)
  document.getElementById('main')?.parentElement?.scrollTo(0, 0)
}

/** Shows the beginning of a page that is opened from far down in another, such as the row of a long list. */
export const useBeginning = (): void => useLayoutEffect(showBeginning, [])

/** Reads the next page of a list, if there is one. */
export const MoreButton = ({
  query: { hasNextPage, isFetchingNextPage, fetchNextPage },
  className,
}: {
  query: Pick<UseInfiniteQueryResult, 'hasNextPage' | 'isFetchingNextPage' | 'fetchNextPage'>
  className?: string
}) =>
  hasNextPage && (
    <Button
      className={className}
      busy={isFetchingNextPage}
      onClick={() => void fetchNextPage()}
      label={shellText.more}
    />
  )

/** Names with values; one without a value is left out. `rowClass` is the look of a name with its value. */
export function Facts({
  rows,
  className = 'grid grid-cols-[auto_1fr] gap-x-4 gap-y-1',
  rowClass = 'contents',
}: {
  rows: readonly (readonly [name: string, value: ReactNode])[]
  className?: string
  rowClass?: string
}) {
  const given = rows.filter(([, value]) => value !== null && value !== false && value !== undefined && value !== '')
  return (
    <dl className={className}>
      {given.map(([name, value]) => (
        <div key={name} className={rowClass}>
          <dt className="text-muted break-words">{name}</dt>
          <dd className="min-w-0 break-words">{value}</dd>
        </div>
      ))}
    </dl>
  )
}

/** Leads from one thing back to the list of all, as it was left. */
export const BackLink = ({ page }: { page: keyof typeof shellText.pages }) => (
  <Link href={asLeft(`/${page}`)} className="text-muted hover:text-text mb-2 inline-flex items-center gap-1 text-sm">
    <ArrowLeft aria-hidden className="size-4" />
    {shellText.backTo(shellText.pages[page])}
  </Link>
)
