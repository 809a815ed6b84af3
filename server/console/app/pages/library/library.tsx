import { PageHeading } from '../../components/page-heading.tsx'
import { shellText } from '../../text/shell.ts'

export default function Library() {
  return <PageHeading title={shellText.pages.library} />
}
