import { Fragment, useMemo } from 'react'
import { differencesText as text } from '../../text/differences.ts'
import { countText } from '../format.ts'
import { type ComparedPart, compareLines, compareWords, shownLines, shownPassages } from './compare.ts'

const looks = { same: '', added: 'bg-good-soft text-good', removed: 'bg-bad-soft text-bad' }
const signs = { same: ' ', added: '+', removed: '−' }

/** Lines with what was added and removed; a number stands for as many lines that did not change. */
export const LineDifference = ({ label, lines }: { label: string; lines: readonly (ComparedPart | number)[] }) => (
  <div
    // Focusable, so that it can be scrolled by keyboard.
    tabIndex={0}
    role="region"
    aria-label={label}
    className="border-line bg-surface overflow-x-auto rounded-lg border py-2 font-mono text-xs"
  >
    {lines.map((line, at) =>
      typeof line === 'number' ? (
        // Lines have no other identity.
        <p key={at} className="text-muted bg-raised my-1 px-3 py-0.5">
          {text.unchanged(line)}
        </p>
      ) : (
        // Lines have no other identity.
        <p key={at} className={`px-3 whitespace-pre ${looks[line.kind]}`}>
          <span aria-hidden>{signs[line.kind]} </span>
          {line.kind !== 'same' && <span className="sr-only">{text[line.kind]}: </span>}
          {line.text}
        </p>
      ),
    )}
  </div>
)

/** Characters of each text that are compared, and lines that are shown: a result may have megabytes. */
const maxCharacters = 100_000
const maxLines = 1_000

interface TextDifferenceProps {
  label: string
  before: string
  after: string
}

/** What differs between two texts; of long ones, between their beginnings. */
export function TextDifference({ label, before, after }: TextDifferenceProps) {
  const isLong = before.length > maxCharacters || after.length > maxCharacters
  return (
    <>
      <Marked label={label} before={before.slice(0, maxCharacters)} after={after.slice(0, maxCharacters)} />
      {isLong && <p className="text-muted mt-1 text-xs">{text.cut(countText(maxCharacters))}</p>}
    </>
  )
}

/** Two texts as one, in which words that were removed and added are marked; texts that differ much by lines. */
function Marked({ label, before, after }: TextDifferenceProps) {
  const { passages, lines = [] } = useMemo(() => {
    const passages = compareWords(before, after)
    return passages ? { passages } : { lines: shownLines(compareLines(before, after)) }
  }, [before, after])
  if (!passages)
    return (
      <>
        <LineDifference label={label} lines={lines.slice(0, maxLines)} />
        {lines.length > maxLines && <p className="text-muted mt-1 text-xs">{text.cutLines(countText(maxLines))}</p>}
      </>
    )
  return (
    <p className="bg-surface border-line rounded border p-2 break-words whitespace-pre-wrap">
      {shownPassages(passages).map((passage, at) => {
        // Passages have no other identity.
        if (typeof passage === 'number')
          return (
            <span key={at} className="text-muted text-xs">
              {text.unchangedCharacters(countText(passage))}
            </span>
          )
        if (passage.kind === 'same') return <Fragment key={at}>{passage.text}</Fragment>
        const Mark = passage.kind === 'added' ? 'ins' : 'del'
        return (
          <Mark
            key={at}
            className={`mr-0.5 rounded-sm px-0.5 ${looks[passage.kind]} ${passage.kind === 'added' ? 'no-underline' : ''}`}
          >
            <span className="sr-only">{text[passage.kind]}: </span>
            {passage.text}
          </Mark>
        )
      })}
    </p>
  )
}
