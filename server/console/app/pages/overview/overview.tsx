import { useSession } from '../../api/session.ts'
import { MachineCard } from './machine.tsx'
import { OwnModels } from './own-models.tsx'

export default function Overview() {
  const { can, session } = useSession()
  return session.owns_machine && can('admin:read') ? <MachineCard /> : <OwnModels />
}
