"""Name topics: what the name of a column suggests, in eight European languages.

A short word has to be a word of the name; a long one may be a part of it, since some languages write words together.
"""

import re
import unicodedata
from enum import Enum

_PART = 6  # minimum length at which a word counts inside another one


class Topic(Enum):
    """What a name suggests; the value is the explanation."""

    PERSON = "it names or reaches a person"
    NUMBER = "it numbers or names persons or records"
    WEIGHT = "it is a survey weight"
    HOUSEHOLD = "it numbers households"
    KNOWN = "others know it about a person"
    PRIVATE = "nobody should learn it about a person"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WORDS: dict[Topic, frozenset[str]] = {
    Topic.WEIGHT: _words(
        "wgt wt fnlwgt afnlwgt pweight fweight perwt hhwt sampleweight surveyweight samplingweight stichprobengewicht "
        "hochrechnungsfaktor ponderation poidssondage factorexpansion ponderacion pesocampionario fatorexpansao "
        "steekproefgewicht"
    ),
    Topic.HOUSEHOLD: _words(
        "hhid householdid haushaltsid haushaltsnummer menageid idmenage hogarid idhogar famigliaid idfamiglia "
        "domicilioid huishoudenid"
    ),
    Topic.PERSON: _words(
        "email mail mailaddress phone telephone mobile cellphone fax ssn nino nhsnumber mrn passport iban creditcard "
        "licenseplate address street firstname lastname surname forename givenname familyname fullname middlename "
        "username nickname ip ipaddress macaddress imei url homepage signature biometric "
        "vorname nachname familienname telefon handy strasse hausnummer anschrift adresse reisepass personalausweis "
        "steuernummer steuerid sozialversicherungsnummer versichertennummer kennzeichen kontonummer "
        "prenom nomfamille telephoneportable courriel rue nir numerosecu immatriculation "
        "apellido apellidos telefono correo direccion calle dni nif nie pasaporte matricula "
        "cognome indirizzo codicefiscale targa cellulare telefone endereco sobrenome cpf rg "
        "voornaam achternaam straat burgerservicenummer bsn nazwisko imie ulica pesel"
    ),
    Topic.NUMBER: _words(
        "id ids uid uuid guid pid key rowid index recordid recordnumber personid patientid customerid clientid userid "
        "memberid caseid studentid employeeid subjectid respondentid name nom nombre nome naam nummer nr no num numero "
        "number identifier kennung schluessel identifiant identificador identificatore"
    ),
    Topic.KNOWN: _words(
        "age sex gender birth born dob birthdate dateofbirth birthyear yearofbirth birthday zip zipcode postcode "
        "postalcode city town village county region state province country nationality citizenship race ethnic "
        "ethnicity marital maritalstatus relationship education degree school occupation job profession industry "
        "workclass employer household householdsize children height district municipality neighbourhood language "
        "arrival admission discharge "
        "alter geschlecht geburt geburtsdatum geburtsjahr plz postleitzahl ort wohnort stadt gemeinde kreis land "
        "bundesland staatsangehoerigkeit familienstand bildung abschluss beruf branche haushalt kinder sprache "
        "sexe naissance datenaissance anneenaissance codepostal ville commune departement pays nationalite "
        "situationfamiliale diplome metier emploi enfants langue "
        "edad sexo genero nacimiento codigopostal ciudad municipio provincia pais nacionalidad estadocivil educacion "
        "estudios ocupacion profesion hijos idioma "
        "eta sesso genere nascita datanascita cap citta comune regione paese nazionalita statocivile istruzione "
        "titolostudio professione figli idade nascimento cidade distrito escolaridade ocupacao profissao filhos raca "
        "leeftijd geslacht geboorte geboortedatum geboortejaar woonplaats gemeente nationaliteit burgerlijkestaat "
        "opleiding beroep kinderen wiek plec dataurodzenia miasto gmina powiat wojewodztwo wyksztalcenie zawod"
    ),
    Topic.PRIVATE: _words(
        "diagnosis disease illness condition icd icd10 treatment therapy drug medication prescription disability hiv "
        "cancer outcome target class salary income wage wages earnings pay debt credit loan balance religion faith "
        "political party vote union orientation crime offence conviction grade score result test allergy pregnancy "
        "diagnose krankheit erkrankung behandlung medikament behinderung gehalt lohn einkommen schulden kredit "
        "religionszugehoerigkeit konfession partei gewerkschaft straftat note "
        "diagnostic maladie traitement medicament handicap salaire revenu revenus dette syndicat vote infraction "
        "diagnostico enfermedad tratamiento medicamento discapacidad salario sueldo ingresos deuda sindicato delito "
        "malattia diagnosi trattamento farmaco stipendio reddito debito sindacato reato "
        "doenca tratamento renda divida ziekte behandeling medicijn inkomen loon schuld geloof choroba diagnoza "
        "zarobki dochod wynagrodzenie"
    ),
}
"""The words of each topic."""

PLACES = _words(
    "zip zipcode postcode postalcode plz postleitzahl codepostal codigopostal cap code fips county district region "
    "state province gemeinde kreis departement municipio provincia comune gmina powiat sex gender geschlecht sexe sexo "
    "sesso race raca ethnicity marital nationality country citizenship occupation industry religion "
    "bundesland beruf branche profession metier isco kldb nace naf ags insee "
    "type typ art kategorie category categorie categoria group gruppe groupe grupo status statut schluessel merkmal"
)
"""Names whose numbers are codes: postcode 10115 is not less than 20095."""


COUNTS = _words(
    "age alter edad eta idade leeftijd wiek size count counts number children kids rooms bedrooms persons people "
    "members siblings cars visits year years month months quarter week weeks day days hour hours minute minutes score "
    "grade rating anzahl groesse jahr monat tag woche note zimmer kinder personen nombre taille annee mois jour "
    "semaine enfants numero tamano anio mes dia semana hijos"
)
"""Names whose numbers count or measure, however few they are."""


DATES = _words(
    "date dates day dob birth birthdate birthday born admission discharge entry exit start begin end since until "
    "datum geburt geburtsdatum geburtstag geboren aufnahme entlassung eintritt austritt beginn ende seit bis von "
    "naissance debut fin entree sortie depuis fecha nacimiento inicio ingreso salida nascita nascimento geboorte"
)
"""Names of dates."""


ENDINGS = ("id", "name", "number", "nummer")
"""Ends of long words that number or name somebody, and some that only look like it."""

_NO_ENDINGS = frozenset({"paid", "covid", "aid", "bid", "grid", "valid", "prepaid", "unpaid", "medicaid", "raid"})


def topics_of(name: str) -> set[Topic]:
    """Return the topics of a name.

    Examples
    --------
    >>> topics_of("Date of birth") == topics_of("codePostal") == {Topic.KNOWN}
    True
    >>> topics_of("UTILITYID") == {Topic.NUMBER}, topics_of("x17")
    (True, set())
    """
    found = {topic for topic, words in WORDS.items() if _has(name, words)}
    ends = any(len(word) > 4 and word.endswith(ENDINGS) and word not in _NO_ENDINGS for word in words_of(name))
    return found | ({Topic.NUMBER} if ends else set())


def is_code(name: str) -> bool:
    """Return whether numbers under this name are codes rather than amounts."""
    return _has(name, PLACES)


def is_count(name: str) -> bool:
    """Return whether whole numbers under this name are counts."""
    return not COUNTS.isdisjoint(words_of(name))


def is_date(name: str) -> bool:
    """Return whether values under this name are dates."""
    return _has(name, DATES)


def _has(name: str, words: frozenset[str]) -> bool:
    found = words_of(name)
    joined = "".join(found)
    return joined in words or not words.isdisjoint(found) or any(word in joined for word in words if len(word) >= _PART)


def words_of(name: str) -> list[str]:
    """Split a name into words: lower case without accents, numbers left out.

    Examples
    --------
    >>> words_of("Straße_2"), words_of("birthDate"), words_of("UTILNAME")
    (['strasse'], ['birth', 'date'], ['utilname'])
    """
    spelled = name.replace("ß", "ss").translate(_UMLAUTS)
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", spelled) if not unicodedata.combining(letter))
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain)
    return [word for word in re.split(r"[^a-z]+", apart.lower()) if word]


_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
