import { Fragment } from 'react'

/** A sentence of the API, in which code stands between backticks. */
export function CodeWords({ children }: { children: string }) {
  return children.split('`').map((part, at) =>
    at % 2 === 0 ? (
      <Fragment key={at}>{part}</Fragment>
    ) : (
      <code key={at} className="bg-raised rounded px-1 font-mono">
        {part}
      </code>
    ),
  )
}
