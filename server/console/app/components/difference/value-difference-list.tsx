import { useMemo } from 'react'
import { differencesText as text } from '../../text/differences.ts'
import { Media } from '../result/media.tsx'
import { ownMedium } from '../result/result-facts.ts'
import { TextDifference } from './text-difference.tsx'
import { type ValueDifference, valueDifferences } from './value-differences.ts'

/** Characters of a value that are shown. */
const maxShown = 2_000

/** What differs between two values, part by part: of texts the words, of files both. `same` is said if nothing does. */
export function ValueDifferenceList({ before, after, same }: { before: unknown; after: unknown; same: string }) {
  const { found, more } = useMemo(() => valueDifferences(before, after), [before, after])
  if (found.length === 0) return <p className="text-muted">{same}</p>
  return (
    <>
      <dl className="space-y-3">
        {found.map(difference => {
          const name = nameOf(difference.path)
          return (
            <div key={name}>
              <dt className="text-muted mb-1 font-mono text-xs break-words">{name}</dt>
              <dd>
                <Difference name={name} {...difference} />
              </dd>
            </div>
          )
        })}
      </dl>
      {more && <p className="text-muted mt-2">{text.more}</p>}
    </>
  )
}

/** `images[0].url` */
const nameOf = (path: ValueDifference['path']): string =>
  path.length === 0
    ? text.value
    : path.map((step, at) => (typeof step === 'number' ? `[${step}]` : at === 0 ? step : `.${step}`)).join('')

function Difference({ name, before, after }: { name: string } & Pick<ValueDifference, 'before' | 'after'>) {
  if (isText(before) && isText(after))
    return <TextDifference label={name} before={String(before)} after={String(after)} />
  return (
    <div className="grid gap-2 sm:grid-cols-2">
      <Side label={text.first} name={name} value={before} />
      <Side label={text.second} name={name} value={after} />
    </div>
  )
}

/** Whether a value is a text, a number or a boolean, and no file that is shown. */
const isText = (value: unknown): boolean =>
  typeof value === 'string' ? !ownMedium(value) : typeof value === 'number' || typeof value === 'boolean'

function Side({ label, name, value }: { label: string; name: string; value: unknown }) {
  const medium = typeof value === 'string' ? ownMedium(value) : undefined
  return (
    <div className="min-w-0">
      <p className="text-muted text-xs">{label}</p>
      {medium ? (
        <Media
          {...medium}
          label={`${label}: ${name}`}
          className="border-line max-h-60 max-w-full rounded border"
          audioClass="w-full"
        />
      ) : value === undefined ? (
        <p className="text-muted">{text.missing}</p>
      ) : (
        <p className="bg-surface border-line rounded border p-2 break-words whitespace-pre-wrap">{shownValue(value)}</p>
      )}
    </div>
  )
}

function shownValue(value: unknown): string {
  const shown =
    typeof value === 'string'
      ? value
      : JSON.stringify(value, null, typeof value === 'object' && !Array.isArray(value) ? 2 : 0)
  return shown.length > maxShown ? `${shown.slice(0, maxShown)}…` : shown
}
