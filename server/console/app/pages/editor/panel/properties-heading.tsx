import type { ReactNode } from 'react'

/** The id of the heading, to which the focus moves. There is one at a time. */
export const propertiesId = 'properties'

/** The heading of the properties of a node or of the workflow. */
export function PropertiesHeading({ children }: { children: ReactNode }) {
  return (
    <h2 id={propertiesId} tabIndex={-1} className="min-w-0 truncate font-semibold">
      {children}
    </h2>
  )
}
